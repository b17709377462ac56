"""One thread a query keeps its output in registers and meets the keys with an online softmax."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

#define MAX_HEAD 64

__global__ void linear_kernel(const float* x, const float* weight, float* y, int rows, int inner, int columns) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (warp >= rows * columns) return;
    int row = warp / columns, column = warp % columns;
    float sum = 0.0f;
    for (int k = lane; k < inner; k += 32) sum += x[row * inner + k] * weight[column * inner + k];
    for (int m = 16; m > 0; m >>= 1) sum += __shfl_down_sync(0xffffffff, sum, m);
    if (lane == 0) y[warp] = sum;
}

__global__ void attention_kernel(
    const float* q, const float* kv, float* y, int units, int length, int heads, int size) {
    int unit = blockIdx.x * blockDim.x + threadIdx.x;
    if (unit >= units) return;
    int batch = unit / (length * heads);
    const float* mine = q + (size_t)unit * size;
    const float* keys = kv + (size_t)batch * length * 2 * size;
    float acc[MAX_HEAD];
    for (int f = 0; f < size; ++f) acc[f] = 0.0f;
    float top = -INFINITY, sum = 0.0f, scale = 1.0f / sqrtf((float)size);
    for (int j = 0; j < length; ++j) {
        const float* key = keys + j * 2 * size;
        float dot = 0.0f;
        for (int f = 0; f < size; ++f) dot += mine[f] * key[f];
        dot *= scale;
        float higher = fmaxf(top, dot);
        float keep = expf(top - higher), weight = expf(dot - higher);
        sum = sum * keep + weight;
        for (int f = 0; f < size; ++f) acc[f] = acc[f] * keep + weight * key[size + f];
        top = higher;
    }
    for (int f = 0; f < size; ++f) y[(size_t)unit * size + f] = acc[f] / sum;
}

static void linear(torch::Tensor x, torch::Tensor weight, torch::Tensor y, int rows) {
    int columns = weight.size(0), inner = weight.size(1);
    linear_kernel<<<(rows * columns + 7) / 8, 256>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), y.data_ptr<float>(), rows, inner, columns);
}

torch::Tensor multi_query_attention(
    torch::Tensor x, torch::Tensor query, torch::Tensor key_value, torch::Tensor out, int64_t heads) {
    int batch = x.size(0), length = x.size(1), features = x.size(2), rows = batch * length;
    int size = features / heads;
    TORCH_CHECK(size <= MAX_HEAD, "heads of at most 64 features");
    auto q = torch::empty_like(x);
    auto kv = torch::empty({batch, length, 2 * size}, x.options());
    auto mixed = torch::empty_like(x);
    auto y = torch::empty_like(x);
    linear(x, query, q, rows);
    linear(x, key_value, kv, rows);
    int units = rows * heads;
    attention_kernel<<<(units + 63) / 64, 64>>>(
        q.data_ptr<float>(), kv.data_ptr<float>(), mixed.data_ptr<float>(), units, length, heads, size);
    linear(mixed, out, y, rows);
    return y;
}
"""

cpp_source = """
torch::Tensor multi_query_attention(
    torch::Tensor x, torch::Tensor query, torch::Tensor key_value, torch::Tensor out, int64_t heads);
"""

kernels = load_inline(
    name="mini_multi_query_attention",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["multi_query_attention"],
)


class ModelNew(nn.Module):
    def __init__(self, features, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(features, features, bias=False)
        self.key_value = nn.Linear(features, 2 * (features // heads), bias=False)
        self.out = nn.Linear(features, features, bias=False)
        for layer in (self.query, self.key_value, self.out):
            nn.init.normal_(layer.weight, std=features**-0.5)

    def forward(self, x):
        return kernels.multi_query_attention(
            x.contiguous(), self.query.weight, self.key_value.weight, self.out.weight, self.heads
        )
