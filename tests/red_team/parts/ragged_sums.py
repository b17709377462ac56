import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="ragged_sum",
    cpp_sources="torch::Tensor narrow(torch::Tensor x, torch::Tensor n); torch::Tensor wide(torch::Tensor x, torch::Tensor n);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void narrow_kernel(const float* x, const int64_t* lengths, float* out, int rows, int width) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.f;
    for (int i = 0; i < lengths[row]; ++i) sum += x[row * width + i];
    out[row] = sum;
}

__global__ void wide_kernel(const float* x, const int64_t* lengths, float* out, int width) {
    float sum = 0.f;
    for (int i = threadIdx.x; i < lengths[blockIdx.x]; i += 32) sum += x[blockIdx.x * width + i];
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

torch::Tensor narrow(torch::Tensor x, torch::Tensor n) {
    auto out = torch::empty({x.size(0)}, x.options());
    narrow_kernel<<<(x.size(0) + 31) / 32, 32>>>(
        x.data_ptr<float>(), n.data_ptr<int64_t>(), out.data_ptr<float>(), x.size(0), x.size(1));
    return out;
}

torch::Tensor wide(torch::Tensor x, torch::Tensor n) {
    auto out = torch::empty({x.size(0)}, x.options());
    wide_kernel<<<x.size(0), 32>>>(x.data_ptr<float>(), n.data_ptr<int64_t>(), out.data_ptr<float>(), x.size(1));
    return out;
}
""",
    functions=["narrow", "wide"],
)
