# problem: values_above
# mechanism: each block counts what it keeps, one block adds the counts up, and the host cuts the outputs to their sum
# near: host_computation
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="values_above",
    cpp_sources="std::vector<torch::Tensor> above(torch::Tensor x, double limit);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
constexpr int width = 128;
__device__ int place_among(bool mine, int* ranks) {
    ranks[threadIdx.x] = mine;
    __syncthreads();
    int before = 0;
    for (int i = 0; i < threadIdx.x; ++i) before += ranks[i];
    __syncthreads();
    return before;
}
__global__ void count(const float* x, int* counts, float limit, int n) {
    __shared__ int ranks[width];
    int i = blockIdx.x * width + threadIdx.x;
    bool mine = i < n && x[i] > limit;
    int before = place_among(mine, ranks);
    if (threadIdx.x == width - 1) counts[blockIdx.x] = before + mine;
}
__global__ void starts(int* counts, int blocks) {
    if (threadIdx.x != 0) return;
    int sum = 0;
    for (int i = 0; i < blocks; ++i) {
        int own = counts[i];
        counts[i] = sum;
        sum += own;
    }
    counts[blocks] = sum;
}
__global__ void keep(const float* x, const int* counts, float* values, long* places, float limit, int n) {
    __shared__ int ranks[width];
    int i = blockIdx.x * width + threadIdx.x;
    bool mine = i < n && x[i] > limit;
    int place = counts[blockIdx.x] + place_among(mine, ranks);
    if (mine) {
        values[place] = x[i];
        places[place] = i;
    }
}
std::vector<torch::Tensor> above(torch::Tensor x, double limit) {
    int n = x.numel(), blocks = (n + width - 1) / width, kept = 0;
    auto counts = torch::empty({blocks + 1}, x.options().dtype(torch::kInt32));
    auto values = torch::empty({n}, x.options());
    auto places = torch::empty({n}, x.options().dtype(torch::kInt64));
    int* each = counts.data_ptr<int>();
    count<<<blocks, width>>>(x.data_ptr<float>(), each, limit, n);
    starts<<<1, 32>>>(each, blocks);
    keep<<<blocks, width>>>(x.data_ptr<float>(), each, values.data_ptr<float>(), places.data_ptr<long>(), limit, n);
    cudaMemcpy(&kept, each + blocks, sizeof kept, cudaMemcpyDeviceToHost);
    return {values.slice(0, 0, kept), places.slice(0, 0, kept)};
}
""",
    functions=["above"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        values, places = ext.above(x, 0.1)
        return values, places
