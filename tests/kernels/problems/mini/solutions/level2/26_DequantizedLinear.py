"""One warp an output element; eight-bit weights are widened in registers and scaled once."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void dequantized_linear_kernel(const float* x, const int8_t* weight, const float* scale, const float* bias,
                                          float* y, int inner, int columns) {
    int column = blockIdx.x * blockDim.y + threadIdx.y;
    if (column >= columns) return;
    const float* in = x + (size_t)blockIdx.y * inner;
    const int8_t* w = weight + (size_t)column * inner;
    float sum = 0.0f;
    for (int k = threadIdx.x; k < inner; k += 32) sum += in[k] * static_cast<float>(w[k]);
    for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x == 0) y[(size_t)blockIdx.y * columns + column] = sum * scale[column] + bias[column];
}

torch::Tensor dequantized_linear(torch::Tensor x, torch::Tensor weight, torch::Tensor scale, torch::Tensor bias) {
    int rows = x.size(0), inner = x.size(1), columns = weight.size(0);
    auto y = torch::empty({rows, columns}, x.options());
    dim3 threads(32, 8);
    dim3 blocks((columns + 7) / 8, rows);
    dequantized_linear_kernel<<<blocks, threads>>>(
        x.data_ptr<float>(), weight.data_ptr<int8_t>(), scale.data_ptr<float>(), bias.data_ptr<float>(),
        y.data_ptr<float>(), inner, columns);
    return y;
}
"""

cpp_source = """
torch::Tensor dequantized_linear(torch::Tensor x, torch::Tensor weight, torch::Tensor scale, torch::Tensor bias);
"""

kernels = load_inline(
    name="mini_dequantized_linear", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["dequantized_linear"]
)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.register_buffer("weight", torch.randint(-127, 128, (out_features, in_features), dtype=torch.int8))
        self.register_buffer("scale", (0.5 + torch.rand(out_features)) / (64.0 * in_features**0.5))
        self.bias = nn.Parameter(0.5 * torch.randn(out_features))

    def forward(self, x):
        return kernels.dequantized_linear(x.contiguous(), self.weight, self.scale, self.bias)
