"""Grid-stride loop over the elements; the mask is read as bytes of bool."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void bias_gelu_mask_kernel(
    const float* x, const float* bias, const bool* mask, float* y, int n, int features, float inverse_keep) {
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        float v = x[i] + bias[i % features];
        float gelu = 0.5f * v * (1.0f + erff(v * 0.70710678f));
        y[i] = mask[i] ? gelu * inverse_keep : 0.0f;
    }
}

torch::Tensor bias_gelu_mask(torch::Tensor x, torch::Tensor bias, torch::Tensor mask, double keep) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    bias_gelu_mask_kernel<<<(n + 511) / 512, 256>>>(
        x.data_ptr<float>(), bias.data_ptr<float>(), mask.data_ptr<bool>(), y.data_ptr<float>(), n, x.size(1),
        static_cast<float>(1.0 / keep));
    return y;
}
"""

kernels = load_inline(
    name="mini_bias_gelu_mask",
    cpp_sources="torch::Tensor bias_gelu_mask(torch::Tensor x, torch::Tensor bias, torch::Tensor mask, double keep);",
    cuda_sources=cuda_source,
    functions=["bias_gelu_mask"],
)


class ModelNew(nn.Module):
    def __init__(self, features, keep):
        super().__init__()
        self.keep = keep
        self.bias = nn.Parameter(torch.randn(features))

    def forward(self, x, mask):
        return kernels.bias_gelu_mask(x.contiguous(), self.bias, mask.contiguous(), self.keep)
