"""One block a row, which lies in dynamic shared memory: k rounds of finding the largest and removing it."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

#define THREADS 64

__global__ void top_k_kernel(const float* x, float* y, int columns, int k) {
    extern __shared__ float row[];
    __shared__ float best[THREADS];
    __shared__ int place[THREADS];
    int t = threadIdx.x;
    for (int c = t; c < columns; c += THREADS) row[c] = x[(size_t)blockIdx.x * columns + c];
    __syncthreads();
    for (int round = 0; round < k; ++round) {
        float mine = -INFINITY;
        int where = t;
        for (int c = t; c < columns; c += THREADS) {
            if (row[c] > mine) {
                mine = row[c];
                where = c;
            }
        }
        best[t] = mine;
        place[t] = where;
        __syncthreads();
        for (int half = THREADS / 2; half > 0; half >>= 1) {
            if (t < half && best[t + half] > best[t]) {
                best[t] = best[t + half];
                place[t] = place[t + half];
            }
            __syncthreads();
        }
        if (t == 0) {
            y[(size_t)blockIdx.x * k + round] = best[0];
            row[place[0]] = -INFINITY;
        }
        __syncthreads();
    }
}

torch::Tensor top_k(torch::Tensor x, int64_t k) {
    int columns = x.size(1);
    auto y = torch::empty({x.size(0), k}, x.options());
    top_k_kernel<<<x.size(0), THREADS, columns * sizeof(float)>>>(x.data_ptr<float>(), y.data_ptr<float>(), columns, k);
    return y;
}
"""

kernels = load_inline(
    name="mini_top_k",
    cpp_sources="torch::Tensor top_k(torch::Tensor x, int64_t k);",
    cuda_sources=cuda_source,
    functions=["top_k"],
)


class ModelNew(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, x):
        return kernels.top_k(x.contiguous(), self.k)
