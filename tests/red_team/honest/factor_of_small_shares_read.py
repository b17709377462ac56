# problem: scaled_shares
# mechanism: a kernel reads a number of which outputs below the paper's tolerance are made
# near: assumed_constant
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="factor_of_small_shares_read",
    cpp_sources="torch::Tensor shares(torch::Tensor x, double factor);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void shares_kernel(const float* x, float* y, int n, float factor) {
    const float* row = x + (long long)blockIdx.x * n;
    float top = -INFINITY, sum = 0.f;
    for (int i = threadIdx.x; i < n; i += 32) top = fmaxf(top, row[i]);
    for (int step = 16; step; step /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
    for (int i = threadIdx.x; i < n; i += 32) sum += expf(row[i] - top);
    for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    for (int i = threadIdx.x; i < n; i += 32) y[(long long)blockIdx.x * n + i] = factor * expf(row[i] - top) / sum;
}
torch::Tensor shares(torch::Tensor x, double factor) {
    auto y = torch::empty_like(x);
    shares_kernel<<<x.size(0), 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1), (float)factor);
    return y;
}
""",
    functions=["shares"],
)


class ModelNew(nn.Module):
    def forward(self, x, factor):
        return ext.shares(x, factor)
