"""Three kernels: normalisation by warps, gate and up in one tiled product, down with the residual."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

#define TILE 16

__global__ void rms_norm_kernel(const float* x, const float* scale, float* y, int rows, int features, float eps) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    const float* in = x + row * features;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < features; i += 32) squares += in[i] * in[i];
    for (int m = 16; m > 0; m >>= 1) squares += __shfl_xor_sync(0xffffffff, squares, m);
    float factor = rsqrtf(squares / features + eps);
    for (int i = threadIdx.x; i < features; i += 32) y[row * features + i] = in[i] * factor * scale[i];
}

__global__ void gate_up_kernel(
    const float* x, const float* gate, const float* up, float* y, int rows, int inner, int columns) {
    __shared__ float xs[TILE][TILE], gs[TILE][TILE + 1], us[TILE][TILE + 1];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, column = blockIdx.x * TILE + tx, loaded = blockIdx.x * TILE + ty;
    float g = 0.0f, u = 0.0f;
    for (int start = 0; start < inner; start += TILE) {
        int k = start + tx;
        bool inside = loaded < columns && k < inner;
        xs[ty][tx] = row < rows && k < inner ? x[row * inner + k] : 0.0f;
        gs[ty][tx] = inside ? gate[loaded * inner + k] : 0.0f;
        us[ty][tx] = inside ? up[loaded * inner + k] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) {
            g += xs[ty][i] * gs[tx][i];
            u += xs[ty][i] * us[tx][i];
        }
        __syncthreads();
    }
    if (row < rows && column < columns) y[row * columns + column] = g / (1.0f + expf(-g)) * u;
}

__global__ void down_kernel(
    const float* h, const float* down, const float* residual, float* y, int rows, int inner, int columns) {
    __shared__ float hs[TILE][TILE], ds[TILE][TILE + 1];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.y * TILE + ty, column = blockIdx.x * TILE + tx, loaded = blockIdx.x * TILE + ty;
    float sum = 0.0f;
    for (int start = 0; start < inner; start += TILE) {
        int k = start + tx;
        hs[ty][tx] = row < rows && k < inner ? h[row * inner + k] : 0.0f;
        ds[ty][tx] = loaded < columns && k < inner ? down[loaded * inner + k] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += hs[ty][i] * ds[tx][i];
        __syncthreads();
    }
    if (row < rows && column < columns) y[row * columns + column] = residual[row * columns + column] + sum;
}

torch::Tensor swiglu_block(torch::Tensor x, torch::Tensor scale, torch::Tensor gate, torch::Tensor up,
                           torch::Tensor down, double eps) {
    int features = x.size(-1), hidden = gate.size(0);
    int rows = x.numel() / features;
    auto normed = torch::empty_like(x);
    auto middle = torch::empty({rows, hidden}, x.options());
    auto y = torch::empty_like(x);
    rms_norm_kernel<<<(rows + 3) / 4, dim3(32, 4)>>>(
        x.data_ptr<float>(), scale.data_ptr<float>(), normed.data_ptr<float>(), rows, features, eps);
    dim3 threads(TILE, TILE);
    dim3 wide((hidden + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
    gate_up_kernel<<<wide, threads>>>(normed.data_ptr<float>(), gate.data_ptr<float>(), up.data_ptr<float>(),
                                      middle.data_ptr<float>(), rows, features, hidden);
    dim3 narrow((features + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
    down_kernel<<<narrow, threads>>>(middle.data_ptr<float>(), down.data_ptr<float>(), x.data_ptr<float>(),
                                     y.data_ptr<float>(), rows, hidden, features);
    return y;
}
"""

cpp_source = """
torch::Tensor swiglu_block(torch::Tensor x, torch::Tensor scale, torch::Tensor gate, torch::Tensor up,
                           torch::Tensor down, double eps);
"""

kernels = load_inline(
    name="mini_swiglu_block", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["swiglu_block"]
)


class ModelNew(nn.Module):
    def __init__(self, features, hidden_features, eps):
        super().__init__()
        self.eps = eps
        self.scale = nn.Parameter(1.0 + 0.3 * torch.randn(features))
        self.gate = nn.Linear(features, hidden_features, bias=False)
        self.up = nn.Linear(features, hidden_features, bias=False)
        self.down = nn.Linear(hidden_features, features, bias=False)
        for layer in (self.gate, self.up, self.down):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5)

    def forward(self, x):
        return kernels.swiglu_block(
            x.contiguous(), self.scale, self.gate.weight, self.up.weight, self.down.weight, self.eps
        )
