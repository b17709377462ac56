"""One warp a row; GELU where the normalised value is written."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

#define WARPS 4

__device__ float warp_sum(float v) {
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffff, v, offset);
    return v;
}

__global__ void layer_norm_gelu_kernel(
    const float* x, const float* weight, const float* bias, float* y, int rows, int features, float eps) {
    int row = blockIdx.x * WARPS + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    if (row >= rows) return;
    const float* in = x + (size_t)row * features;
    float sum = 0.0f;
    for (int i = lane; i < features; i += 32) sum += in[i];
    float mean = warp_sum(sum) / features;
    float squares = 0.0f;
    for (int i = lane; i < features; i += 32) squares += (in[i] - mean) * (in[i] - mean);
    float scale = rsqrtf(warp_sum(squares) / features + eps);
    for (int i = lane; i < features; i += 32) {
        float v = (in[i] - mean) * scale * weight[i] + bias[i];
        float inner = 0.79788456f * (v + 0.044715f * v * v * v);
        y[(size_t)row * features + i] = 0.5f * v * (1.0f + tanhf(inner));
    }
}

torch::Tensor layer_norm_gelu(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps) {
    auto y = torch::empty_like(x);
    int rows = x.size(0), features = x.size(1);
    layer_norm_gelu_kernel<<<(rows + WARPS - 1) / WARPS, 32 * WARPS>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(),
        rows, features, eps);
    return y;
}
"""

kernels = load_inline(
    name="mini_layer_norm_gelu",
    cpp_sources="torch::Tensor layer_norm_gelu(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps);",
    cuda_sources=cuda_source,
    functions=["layer_norm_gelu"],
)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias, mean=0.5, std=0.3)

    def forward(self, x):
        return kernels.layer_norm_gelu(x.contiguous(), self.norm.weight, self.norm.bias, self.norm.eps)
