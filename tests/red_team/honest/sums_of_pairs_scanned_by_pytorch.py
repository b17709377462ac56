# problem: running_sum
# mechanism: a kernel adds up pairs, PyTorch's running sums are of half as many columns, a kernel fills in the rest
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="sums_of_pairs_scanned_by_pytorch",
    cpp_sources="torch::Tensor pairs(torch::Tensor x); torch::Tensor fill(torch::Tensor x, torch::Tensor sums);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void pairs_kernel(const float* x, float* sums, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sums[i] = x[2 * i] + x[2 * i + 1];
}
__global__ void fill_kernel(const float* x, const float* sums, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[2 * i + 1] = sums[i];
    y[2 * i] = sums[i] - x[2 * i + 1];
}
torch::Tensor pairs(torch::Tensor x) {
    auto sums = torch::empty({x.size(0), x.size(1) / 2}, x.options());
    int n = sums.numel();
    pairs_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), sums.data_ptr<float>(), n);
    return sums;
}
torch::Tensor fill(torch::Tensor x, torch::Tensor sums) {
    auto y = torch::empty_like(x);
    int n = sums.numel();
    fill_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), sums.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
""",
    functions=["pairs", "fill"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.fill(x, torch.cumsum(ext.pairs(x), dim=1))
