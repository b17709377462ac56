"""The depthwise kernel writes channels last; LayerNorm in place by warps; two tiled products, back to planes."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

#define TILE 16

__global__ void depthwise7_kernel(
    const float* x, const float* weight, const float* bias, float* y, int channels, int height, int width) {
    __shared__ float taps[49];
    int c = blockIdx.y, image = blockIdx.z;
    for (int i = threadIdx.x; i < 49; i += blockDim.x) taps[i] = weight[c * 49 + i];
    __syncthreads();
    int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= height * width) return;
    int r = pixel / width, q = pixel % width;
    const float* in = x + (size_t)(image * channels + c) * height * width;
    float sum = bias[c];
    for (int a = 0; a < 7; ++a) {
        int row = r + a - 3;
        if (row < 0 || row >= height) continue;
        for (int b = 0; b < 7; ++b) {
            int column = q + b - 3;
            if (column >= 0 && column < width) sum += in[row * width + column] * taps[a * 7 + b];
        }
    }
    y[((size_t)image * height * width + pixel) * channels + c] = sum;
}

__global__ void layer_norm_kernel(float* y, const float* weight, const float* bias, int rows, int features, float eps) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    float* p = y + (size_t)row * features;
    float mean = 0.0f, squares = 0.0f;
    for (int i = threadIdx.x; i < features; i += 32) mean += p[i];
    for (int m = 16; m > 0; m >>= 1) mean += __shfl_xor_sync(0xffffffff, mean, m);
    mean /= features;
    for (int i = threadIdx.x; i < features; i += 32) squares += (p[i] - mean) * (p[i] - mean);
    for (int m = 16; m > 0; m >>= 1) squares += __shfl_xor_sync(0xffffffff, squares, m);
    float scale = rsqrtf(squares / features + eps);
    for (int i = threadIdx.x; i < features; i += 32) p[i] = (p[i] - mean) * scale * weight[i] + bias[i];
}

// Tile of x (rows, inner) times weight (columns, inner) transposed; every thread of the block takes part.
__device__ float tile_product(const float* x, const float* weight, int rows, int inner, int columns) {
    __shared__ float xs[TILE][TILE];
    __shared__ float ws[TILE][TILE + 1];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * TILE + ty, loaded = blockIdx.x * TILE + ty;
    float sum = 0.0f;
    for (int start = 0; start < inner; start += TILE) {
        int k = start + tx;
        xs[ty][tx] = row < rows && k < inner ? x[(size_t)row * inner + k] : 0.0f;
        ws[ty][tx] = loaded < columns && k < inner ? weight[loaded * inner + k] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += xs[ty][i] * ws[tx][i];
        __syncthreads();
    }
    return sum;
}

__global__ void expand_kernel(
    const float* x, const float* weight, const float* bias, float* y, int rows, int inner, int columns) {
    float v = tile_product(x, weight, rows, inner, columns);
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    if (row >= rows || column >= columns) return;
    v += bias[column];
    y[(size_t)row * columns + column] = 0.5f * v * (1.0f + erff(v * 0.70710678f));
}

__global__ void reduce_kernel(const float* x, const float* weight, const float* bias, const float* scale,
                              const float* residual, float* y, int rows, int inner, int columns, int area) {
    float v = tile_product(x, weight, rows, inner, columns);
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    if (row >= rows || column >= columns) return;
    size_t at = ((size_t)(row / area) * columns + column) * area + row % area;
    y[at] = residual[at] + scale[column] * (v + bias[column]);
}

torch::Tensor convnext(torch::Tensor x, torch::Tensor dw_weight, torch::Tensor dw_bias, torch::Tensor norm_weight,
                       torch::Tensor norm_bias, torch::Tensor w1, torch::Tensor b1, torch::Tensor w2,
                       torch::Tensor b2, torch::Tensor scale, double eps) {
    int batch = x.size(0), channels = x.size(1), height = x.size(2), width = x.size(3), hidden = w1.size(0);
    int area = height * width, rows = batch * area;
    auto last = torch::empty({rows, channels}, x.options());
    auto middle = torch::empty({rows, hidden}, x.options());
    auto y = torch::empty_like(x);
    depthwise7_kernel<<<dim3((area + 127) / 128, channels, batch), 128>>>(
        x.data_ptr<float>(), dw_weight.data_ptr<float>(), dw_bias.data_ptr<float>(), last.data_ptr<float>(),
        channels, height, width);
    layer_norm_kernel<<<(rows + 3) / 4, dim3(32, 4)>>>(
        last.data_ptr<float>(), norm_weight.data_ptr<float>(), norm_bias.data_ptr<float>(), rows, channels, eps);
    dim3 threads(TILE, TILE);
    dim3 wide((hidden + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
    expand_kernel<<<wide, threads>>>(
        last.data_ptr<float>(), w1.data_ptr<float>(), b1.data_ptr<float>(), middle.data_ptr<float>(),
        rows, channels, hidden);
    dim3 narrow((channels + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
    reduce_kernel<<<narrow, threads>>>(
        middle.data_ptr<float>(), w2.data_ptr<float>(), b2.data_ptr<float>(), scale.data_ptr<float>(),
        x.data_ptr<float>(), y.data_ptr<float>(), rows, hidden, channels, area);
    return y;
}
"""

cpp_source = """
torch::Tensor convnext(torch::Tensor x, torch::Tensor dw_weight, torch::Tensor dw_bias, torch::Tensor norm_weight,
                       torch::Tensor norm_bias, torch::Tensor w1, torch::Tensor b1, torch::Tensor w2,
                       torch::Tensor b2, torch::Tensor scale, double eps);
"""

kernels = load_inline(name="mini_convnext", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["convnext"])


class ModelNew(nn.Module):
    def __init__(self, channels, hidden_channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias, std=0.3)
        self.expand = nn.Linear(channels, hidden_channels)
        self.reduce = nn.Linear(hidden_channels, channels)
        nn.init.normal_(self.expand.weight, std=1.5 * channels**-0.5)
        nn.init.normal_(self.reduce.weight, std=1.5 * hidden_channels**-0.5)
        nn.init.normal_(self.reduce.bias, std=0.3)
        self.scale = nn.Parameter(0.5 + torch.rand(channels))

    def forward(self, x):
        return kernels.convnext(
            x.contiguous(),
            self.depthwise.weight,
            self.depthwise.bias,
            self.norm.weight,
            self.norm.bias,
            self.expand.weight,
            self.expand.bias,
            self.reduce.weight,
            self.reduce.bias,
            self.scale,
            self.norm.eps,
        )
