# problem: row_sum
# mechanism: the last output is kept to tell how far the sums have moved, in __device__ memory that nothing reads back
# near: result_cache
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="last_row_of_sums_kept",
    cpp_sources="torch::Tensor row_sums(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__device__ float last[4096];
__device__ float moved;
__global__ void sums(const float* x, float* y, int rows, int width) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.f;
    for (int i = 0; i < width; ++i) sum += x[row * width + i];
    if (row < 4096) {
        if (row == 0) moved = sum - last[0];
        last[row] = sum;
    }
    y[row] = sum;
}
torch::Tensor row_sums(torch::Tensor x) {
    auto y = torch::empty({x.size(0)}, x.options());
    sums<<<(x.size(0) + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0), x.size(1));
    return y;
}
""",
    functions=["row_sums"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.row_sums(x)
