"""One warp a row, summed by shuffles."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void row_sum_kernel(const float* x, float* y, int rows, int columns) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int c = lane; c < columns; c += 32) sum += x[(size_t)row * columns + c];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (lane == 0) y[row] = sum;
}

torch::Tensor row_sum(torch::Tensor x) {
    int columns = x.size(-1);
    int rows = x.numel() / columns;
    auto y = torch::empty({x.size(0), x.size(1)}, x.options());
    int threads = 128;
    int blocks = (rows * 32 + threads - 1) / threads;
    row_sum_kernel<<<blocks, threads>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, columns);
    return y;
}
"""

kernels = load_inline(
    name="mini_row_sum",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["row_sum"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return kernels.row_sum(x.contiguous())
