"""One tiled kernel for all three layers, with ReLU in its epilogue."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

#define TILE 16

__global__ void linear_kernel(const float* x, const float* weight, const float* bias, float* y,
                              int rows, int inner, int columns, bool relu) {
    __shared__ float xs[TILE][TILE];
    __shared__ float ws[TILE][TILE + 1];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    int loaded = blockIdx.x * TILE + threadIdx.y;
    float sum = 0.0f;
    for (int start = 0; start < inner; start += TILE) {
        int k = start + threadIdx.x;
        xs[threadIdx.y][threadIdx.x] = row < rows && k < inner ? x[row * inner + k] : 0.0f;
        ws[threadIdx.y][threadIdx.x] = loaded < columns && k < inner ? weight[loaded * inner + k] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += xs[threadIdx.y][i] * ws[threadIdx.x][i];
        __syncthreads();
    }
    if (row < rows && column < columns) {
        sum += bias[column];
        y[row * columns + column] = relu ? fmaxf(sum, 0.0f) : sum;
    }
}

torch::Tensor linear(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, bool relu) {
    int rows = x.size(0), inner = x.size(1), columns = weight.size(0);
    auto y = torch::empty({rows, columns}, x.options());
    dim3 blocks((columns + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
    linear_kernel<<<blocks, dim3(TILE, TILE)>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(),
        rows, inner, columns, relu);
    return y;
}
"""

kernels = load_inline(
    name="mini_mlp",
    cpp_sources="torch::Tensor linear(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, bool relu);",
    cuda_sources=cuda_source,
    functions=["linear"],
)


class ModelNew(nn.Module):
    def __init__(self, in_features, hidden_features, out_features):
        super().__init__()
        self.first = nn.Linear(in_features, hidden_features)
        self.second = nn.Linear(hidden_features, hidden_features)
        self.third = nn.Linear(hidden_features, out_features)
        for layer in (self.first, self.second, self.third):
            nn.init.normal_(layer.bias, std=0.5)

    def forward(self, x):
        x = kernels.linear(x.contiguous(), self.first.weight, self.first.bias, True)
        x = kernels.linear(x, self.second.weight, self.second.bias, True)
        return kernels.linear(x, self.third.weight, self.third.bias, False)
