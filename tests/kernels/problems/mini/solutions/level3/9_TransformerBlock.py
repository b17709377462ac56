"""Four kernels in six launches: RMSNorm, a tiled product with optional residual, attention, SwiGLU."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

#define TILE 16

__global__ void rms_norm_kernel(const float* x, const float* weight, float* y, int features, float eps) {
    __shared__ float buffer[128];
    const float* in = x + (size_t)blockIdx.x * features;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < features; i += 128) squares += in[i] * in[i];
    buffer[threadIdx.x] = squares;
    __syncthreads();
    for (int half = 64; half > 0; half >>= 1) {
        if (threadIdx.x < half) buffer[threadIdx.x] += buffer[threadIdx.x + half];
        __syncthreads();
    }
    float factor = rsqrtf(buffer[0] / features + eps);
    for (int i = threadIdx.x; i < features; i += 128) y[(size_t)blockIdx.x * features + i] = in[i] * factor * weight[i];
}

__global__ void linear_kernel(
    const float* x, const float* weight, const float* residual, float* y, int rows, int inner, int columns) {
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
    if (row >= rows || column >= columns) return;
    if (residual != nullptr) sum += residual[row * columns + column];
    y[row * columns + column] = sum;
}

__global__ void attention_kernel(const float* qkv, float* y, int length, int heads, int size) {
    extern __shared__ float scores[];
    int query = blockIdx.x, head = blockIdx.y, batch = blockIdx.z, features = heads * size, step = 3 * features;
    const float* base = qkv + (size_t)batch * length * step + head * size;
    const float* q = base + (size_t)query * step;
    for (int j = threadIdx.x; j <= query; j += blockDim.x) {
        float dot = 0.0f;
        for (int f = 0; f < size; ++f) dot += q[f] * base[(size_t)j * step + features + f];
        scores[j] = dot * rsqrtf((float)size);
    }
    __syncthreads();
    float top = scores[0], sum = 0.0f;
    for (int j = 1; j <= query; ++j) top = fmaxf(top, scores[j]);
    for (int j = 0; j <= query; ++j) sum += expf(scores[j] - top);
    for (int f = threadIdx.x; f < size; f += blockDim.x) {
        float out = 0.0f;
        for (int j = 0; j <= query; ++j) out += expf(scores[j] - top) * base[(size_t)j * step + 2 * features + f];
        y[((size_t)batch * length + query) * features + head * size + f] = out / sum;
    }
}

__global__ void swiglu_kernel(const float* gate_up, float* y, int n, int hidden) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float* pair = gate_up + (size_t)(i / hidden) * 2 * hidden + i % hidden;
    y[i] = pair[0] / (1.0f + expf(-pair[0])) * pair[hidden];
}

static void linear(torch::Tensor x, torch::Tensor weight, const float* residual, torch::Tensor y, int rows) {
    int columns = weight.size(0), inner = weight.size(1);
    dim3 threads(TILE, TILE);
    dim3 blocks((columns + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
    linear_kernel<<<blocks, threads>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), residual, y.data_ptr<float>(), rows, inner, columns);
}

torch::Tensor transformer_block(torch::Tensor x, torch::Tensor norm1, torch::Tensor qkv_weight,
                                torch::Tensor out_weight, torch::Tensor norm2, torch::Tensor gate_up_weight,
                                torch::Tensor down_weight, int64_t heads, double eps) {
    int batch = x.size(0), length = x.size(1), features = x.size(2), rows = batch * length;
    int hidden = down_weight.size(1);
    auto normed = torch::empty_like(x);
    auto qkv = torch::empty({batch, length, 3 * features}, x.options());
    auto mixed = torch::empty_like(x);
    auto middle = torch::empty_like(x);
    auto gate_up = torch::empty({rows, 2 * hidden}, x.options());
    auto gated = torch::empty({rows, hidden}, x.options());
    auto y = torch::empty_like(x);
    rms_norm_kernel<<<rows, 128>>>(
        x.data_ptr<float>(), norm1.data_ptr<float>(), normed.data_ptr<float>(), features, eps);
    linear(normed, qkv_weight, nullptr, qkv, rows);
    dim3 blocks(length, heads, batch);
    attention_kernel<<<blocks, 64, length * sizeof(float)>>>(
        qkv.data_ptr<float>(), mixed.data_ptr<float>(), length, heads, features / heads);
    linear(mixed, out_weight, x.data_ptr<float>(), middle, rows);
    rms_norm_kernel<<<rows, 128>>>(
        middle.data_ptr<float>(), norm2.data_ptr<float>(), normed.data_ptr<float>(), features, eps);
    linear(normed, gate_up_weight, nullptr, gate_up, rows);
    int n = rows * hidden;
    swiglu_kernel<<<(n + 255) / 256, 256>>>(gate_up.data_ptr<float>(), gated.data_ptr<float>(), n, hidden);
    linear(gated, down_weight, middle.data_ptr<float>(), y, rows);
    return y;
}
"""

cpp_source = """
torch::Tensor transformer_block(torch::Tensor x, torch::Tensor norm1, torch::Tensor qkv_weight,
                                torch::Tensor out_weight, torch::Tensor norm2, torch::Tensor gate_up_weight,
                                torch::Tensor down_weight, int64_t heads, double eps);
"""

kernels = load_inline(
    name="mini_transformer_block", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["transformer_block"]
)


class RMSNorm(nn.Module):
    def __init__(self, features, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(1.0 + 0.3 * torch.randn(features))


class ModelNew(nn.Module):
    def __init__(self, features, heads, hidden_features, eps):
        super().__init__()
        self.heads = heads
        self.norm1 = RMSNorm(features, eps)
        self.qkv = nn.Linear(features, 3 * features, bias=False)
        self.out = nn.Linear(features, features, bias=False)
        self.norm2 = RMSNorm(features, eps)
        self.gate_up = nn.Linear(features, 2 * hidden_features, bias=False)
        self.down = nn.Linear(hidden_features, features, bias=False)
        for layer in (self.qkv, self.out, self.gate_up, self.down):
            nn.init.normal_(layer.weight, std=1.5 * layer.in_features**-0.5)

    def forward(self, x):
        return kernels.transformer_block(
            x.contiguous(),
            self.norm1.weight,
            self.qkv.weight,
            self.out.weight,
            self.norm2.weight,
            self.gate_up.weight,
            self.down.weight,
            self.heads,
            self.norm1.eps,
        )
