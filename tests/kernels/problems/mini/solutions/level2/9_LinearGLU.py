"""Tiled: one tile of the input serves the tiles of both halves of the weight."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

constexpr int TILE = 16;

__global__ void linear_glu_kernel(
    const float* x, const float* weight, const float* bias, float* y, int rows, int inner, int columns) {
    __shared__ float xs[TILE][TILE + 1];
    __shared__ float values[TILE][TILE + 1];
    __shared__ float gates[TILE][TILE + 1];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, column = blockIdx.x * TILE + tx, loaded = blockIdx.x * TILE + ty;
    float value = 0.0f, gate = 0.0f;
    for (int start = 0; start < inner; start += TILE) {
        int k = start + tx;
        bool inside = loaded < columns && k < inner;
        xs[ty][tx] = row < rows && k < inner ? x[row * inner + k] : 0.0f;
        values[ty][tx] = inside ? weight[loaded * inner + k] : 0.0f;
        gates[ty][tx] = inside ? weight[(columns + loaded) * inner + k] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; ++i) {
            value += xs[ty][i] * values[tx][i];
            gate += xs[ty][i] * gates[tx][i];
        }
        __syncthreads();
    }
    if (row < rows && column < columns) {
        value += bias[column];
        gate += bias[columns + column];
        y[row * columns + column] = value / (1.0f + expf(-gate));
    }
}

torch::Tensor linear_glu(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
    int rows = x.size(0), inner = x.size(1), columns = weight.size(0) / 2;
    auto y = torch::empty({rows, columns}, x.options());
    dim3 blocks((columns + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
    linear_glu_kernel<<<blocks, dim3(TILE, TILE)>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(),
        rows, inner, columns);
    return y;
}
"""

kernels = load_inline(
    name="mini_linear_glu",
    cpp_sources="torch::Tensor linear_glu(torch::Tensor x, torch::Tensor weight, torch::Tensor bias);",
    cuda_sources=cuda_source,
    functions=["linear_glu"],
)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, 2 * out_features)
        nn.init.normal_(self.linear.bias, std=0.5)

    def forward(self, x):
        return kernels.linear_glu(x.contiguous(), self.linear.weight, self.linear.bias)
