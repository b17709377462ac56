# problem: softmax
# mechanism: functors by value with a gain, a table of chunks and a magic divisor, made on the host of sizes and constants
# near: host_computation
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>
#include <cstdint>

constexpr int kChunks = 80;

__host__ __device__ inline int chunk_begin(const float* shares, int chunk, int width) {
    float before = 0.f;
    for (int c = 0; c < chunk; ++c) before += shares[c];
    return chunk == kChunks ? width : (int)(before * width);
}

struct Divide {
    uint32_t by, magic, shift;
    explicit Divide(uint32_t d) : by(d), magic(0), shift(0) {
        while ((1ull << shift) < d) ++shift;
        magic = (uint32_t)(((1ull << 32) * ((1ull << shift) - d)) / d + 1);
    }
    __host__ __device__ uint32_t operator()(uint32_t n) const {
        return (uint32_t)((((uint64_t)n * magic >> 32) + n) >> shift);
    }
};

struct Chunks {
    int begin[kChunks + 1];
    explicit Chunks(int width) {
        float shares[kChunks];
        for (int c = 0; c < kChunks; ++c) shares[c] = 1.f / kChunks;
        for (int c = 0; c <= kChunks; ++c) begin[c] = chunk_begin(shares, c, width);
    }
};

struct Power {
    float gain, bias;
    __host__ __device__ float operator()(float v) const { return exp2f(v * gain + bias); }
};

template <class Op>
__global__ void totals(const float* x, float* total, Op op, Chunks chunks, int width) {
    float s = 0.f;
    for (int c = 0; c < kChunks; ++c)
        for (int j = chunks.begin[c]; j < chunks.begin[c + 1]; ++j) s += op(x[threadIdx.x * width + j]);
    total[threadIdx.x] = s;
}

template <class Op>
__global__ void shares(const float* x, const float* total, float* y, Op op, Divide row, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = op(x[i]) / total[row(i)];
}

torch::Tensor softmax(torch::Tensor x) {
    auto y = torch::empty_like(x);
    auto total = torch::empty({x.size(0)}, x.options());
    const int n = x.numel(), width = x.size(1);
    const Power power{1.f / std::log(2.f), 0.f};
    totals<<<1, (int)x.size(0)>>>(x.data_ptr<float>(), total.data_ptr<float>(), power, Chunks(width), width);
    shares<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), total.data_ptr<float>(), y.data_ptr<float>(), power,
                                     Divide(width), n);
    return y;
}
"""
ext = load_inline(
    name="functors_of_sizes",
    cpp_sources="torch::Tensor softmax(torch::Tensor x);",
    cuda_sources=SOURCE,
    functions=["softmax"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.softmax(x.contiguous())
