# problem: row_median
# mechanism: one launch counts the rank of each number in its row, another one writes the number that stands in the middle
# near: host_computation
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="medians_by_ranks_in_two_launches",
    cpp_sources="torch::Tensor medians(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void ranks_kernel(const float* x, int* ranks, int w) {
    const int row = blockIdx.x, j = threadIdx.x;
    if (j >= w) return;
    const float own = x[row * w + j];
    int rank = 0;
    for (int k = 0; k < w; ++k) rank += x[row * w + k] < own || (x[row * w + k] == own && k < j);
    ranks[row * w + j] = rank;
}
__global__ void middle_kernel(const float* x, const int* ranks, float* y, int w) {
    const int row = blockIdx.x, j = threadIdx.x;
    if (j < w && ranks[row * w + j] == (w - 1) / 2) y[row] = x[row * w + j];
}
torch::Tensor medians(torch::Tensor x) {
    const int rows = x.size(0), w = x.size(1);
    auto ranks = torch::empty({rows, w}, x.options().dtype(torch::kInt32));
    auto y = torch::empty({rows}, x.options());
    ranks_kernel<<<rows, 128>>>(x.data_ptr<float>(), ranks.data_ptr<int>(), w);
    middle_kernel<<<rows, 128>>>(x.data_ptr<float>(), ranks.data_ptr<int>(), y.data_ptr<float>(), w);
    return y;
}
""",
    functions=["medians"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.medians(x.contiguous())
