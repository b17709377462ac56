"""One block a row: the normalised row stays in shared memory, and each warp makes outputs by dot products."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__device__ float warp_sum(float v) {
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffff, v, offset);
    return v;
}

__global__ void rms_norm_linear_kernel(const float* x, const float* scale, const float* weight, float* y,
                                       int in_features, int out_features, float eps) {
    extern __shared__ float row[];
    __shared__ float partial[8];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < in_features; i += blockDim.x) {
        float v = x[(size_t)blockIdx.x * in_features + i];
        row[i] = v * scale[i];
        squares += v * v;
    }
    squares = warp_sum(squares);
    if (lane == 0) partial[warp] = squares;
    __syncthreads();
    squares = 0.0f;
    for (int w = 0; w < 8; ++w) squares += partial[w];
    float factor = rsqrtf(squares / in_features + eps);
    for (int o = warp; o < out_features; o += 8) {
        float sum = 0.0f;
        for (int i = lane; i < in_features; i += 32) sum += row[i] * weight[(size_t)o * in_features + i];
        sum = warp_sum(sum);
        if (lane == 0) y[(size_t)blockIdx.x * out_features + o] = sum * factor;
    }
}

torch::Tensor rms_norm_linear(torch::Tensor x, torch::Tensor scale, torch::Tensor weight, double eps) {
    int rows = x.size(0), in_features = x.size(1), out_features = weight.size(0);
    auto y = torch::empty({rows, out_features}, x.options());
    rms_norm_linear_kernel<<<rows, 256, in_features * sizeof(float)>>>(
        x.data_ptr<float>(), scale.data_ptr<float>(), weight.data_ptr<float>(), y.data_ptr<float>(),
        in_features, out_features, eps);
    return y;
}
"""

cpp_source = """
torch::Tensor rms_norm_linear(torch::Tensor x, torch::Tensor scale, torch::Tensor weight, double eps);
"""

kernels = load_inline(
    name="mini_rms_norm_linear", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["rms_norm_linear"]
)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, eps):
        super().__init__()
        self.eps = eps
        self.scale = nn.Parameter(1.0 + 0.3 * torch.randn(in_features))
        self.linear = nn.Linear(in_features, out_features, bias=False)

    def forward(self, x):
        return kernels.rms_norm_linear(x.contiguous(), self.scale, self.linear.weight, self.eps)
