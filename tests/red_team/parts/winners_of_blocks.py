import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="winners_of_blocks",
    cpp_sources="""
std::vector<torch::Tensor> winners(torch::Tensor x, long per_block);
torch::Tensor best(torch::Tensor values, torch::Tensor places);
torch::Tensor written(torch::Tensor places, long place);
""",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void winners_kernel(const float* x, float* values, long long* places, int w, int per_block) {
    const int row = blockIdx.y, begin = blockIdx.x * per_block, end = min(w, begin + per_block);
    if (threadIdx.x != 0) return;
    int best = begin;
    for (int j = begin + 1; j < end; ++j)
        if (x[row * w + j] > x[row * w + best]) best = j;
    values[row * gridDim.x + blockIdx.x] = x[row * w + best];
    places[row * gridDim.x + blockIdx.x] = best;
}
__global__ void best_kernel(const float* values, const long long* places, long long* y, int blocks, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    int best = 0;
    for (int b = 1; b < blocks; ++b)
        if (values[row * blocks + b] > values[row * blocks + best]) best = b;
    y[row] = places[row * blocks + best];
}
__global__ void write_kernel(long long* y, long long place) { y[0] = place; }

std::vector<torch::Tensor> winners(torch::Tensor x, long per_block) {
    const int rows = x.size(0), w = x.size(1), blocks = (w + per_block - 1) / per_block;
    auto values = torch::empty({rows, blocks}, x.options());
    auto places = torch::empty({rows, blocks}, x.options().dtype(torch::kInt64));
    winners_kernel<<<dim3(blocks, rows), 32>>>(
        x.data_ptr<float>(), values.data_ptr<float>(), (long long*)places.data_ptr<int64_t>(), w, (int)per_block);
    return {values, places};
}
torch::Tensor best(torch::Tensor values, torch::Tensor places) {
    const int rows = values.size(0);
    auto y = torch::empty({rows}, places.options());
    best_kernel<<<(rows + 63) / 64, 64>>>(values.data_ptr<float>(), (const long long*)places.data_ptr<int64_t>(),
                                          (long long*)y.data_ptr<int64_t>(), values.size(1), rows);
    return y;
}
torch::Tensor written(torch::Tensor places, long place) {
    auto y = torch::empty({1}, places.options());
    write_kernel<<<1, 1>>>((long long*)y.data_ptr<int64_t>(), (long long)place);
    return y;
}
""",
    functions=["winners", "best", "written"],
)
