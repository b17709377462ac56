"""One warp a row; butterfly shuffles give every lane the sum."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void rms_norm_kernel(const float* x, const float* weight, float* y, int rows, int features, float eps) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    const float* in = x + (size_t)row * features;
    float* out = y + (size_t)row * features;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < features; i += 32) squares += in[i] * in[i];
    for (int mask = 16; mask > 0; mask >>= 1) squares += __shfl_xor_sync(0xffffffff, squares, mask);
    float scale = rsqrtf(squares / features + eps);
    for (int i = threadIdx.x; i < features; i += 32) out[i] = in[i] * scale * weight[i];
}

torch::Tensor rms_norm(torch::Tensor x, torch::Tensor weight, double eps) {
    auto y = torch::empty_like(x);
    int rows = x.size(0), features = x.size(1);
    dim3 threads(32, 4);
    rms_norm_kernel<<<(rows + 3) / 4, threads>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), y.data_ptr<float>(), rows, features, (float)eps);
    return y;
}
"""

kernels = load_inline(
    name="mini_rms_norm",
    cpp_sources="torch::Tensor rms_norm(torch::Tensor x, torch::Tensor weight, double eps);",
    cuda_sources=cuda_source,
    functions=["rms_norm"],
)


class ModelNew(nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(1.0 + 0.3 * torch.randn(features))

    def forward(self, x):
        return kernels.rms_norm(x.contiguous(), self.weight, self.eps)
