"""Tiled matrix product with GELU and the residual in its epilogue."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

#define TILE 16

__global__ void linear_gelu_residual(const float* x, const float* weight, const float* bias, float* y,
                                     int rows, int features) {
    __shared__ float xs[TILE][TILE];
    __shared__ float ws[TILE][TILE + 1];
    int row = blockIdx.y * TILE + threadIdx.y;
    int column = blockIdx.x * TILE + threadIdx.x;
    int loaded = blockIdx.x * TILE + threadIdx.y;
    float sum = 0.0f;
    for (int start = 0; start < features; start += TILE) {
        int k = start + threadIdx.x;
        xs[threadIdx.y][threadIdx.x] = row < rows && k < features ? x[row * features + k] : 0.0f;
        ws[threadIdx.y][threadIdx.x] = loaded < features && k < features ? weight[loaded * features + k] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += xs[threadIdx.y][i] * ws[threadIdx.x][i];
        __syncthreads();
    }
    if (row < rows && column < features) {
        float v = sum + bias[column];
        float gelu = 0.5f * v * (1.0f + erff(v * 0.70710678f));
        y[row * features + column] = x[row * features + column] + gelu;
    }
}

torch::Tensor forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
    int rows = x.size(0), features = x.size(1);
    auto y = torch::empty_like(x);
    dim3 threads(TILE, TILE);
    dim3 blocks((features + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
    linear_gelu_residual<<<blocks, threads>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), rows, features);
    return y;
}
"""

kernels = load_inline(
    name="mini_linear_gelu_residual",
    cpp_sources="torch::Tensor forward(torch::Tensor x, torch::Tensor weight, torch::Tensor bias);",
    cuda_sources=cuda_source,
    functions=["forward"],
)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)
        nn.init.normal_(self.linear.bias, std=0.5)

    def forward(self, x):
        return kernels.forward(x.contiguous(), self.linear.weight, self.linear.bias)
