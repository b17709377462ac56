# problem: linear_without_bias
# mechanism: the new output holds partial sums between two kernels, the second of which reads and replaces them
# near: result_cache
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="output_as_workspace",
    cpp_sources="torch::Tensor product(torch::Tensor x, torch::Tensor w);",
    cuda_sources=r"""
#include <torch/extension.h>
__global__ void first_half(const float* x, const float* w, float* y, int m, int k, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * n) return;
    float sum = 0.f;
    for (int j = 0; j < k / 2; ++j) sum = fmaf(x[i / n * k + j], w[i % n * k + j], sum);
    y[i] = sum;
}
__global__ void second_half(const float* x, const float* w, float* y, int m, int k, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * n) return;
    float sum = y[i];
    for (int j = k / 2; j < k; ++j) sum = fmaf(x[i / n * k + j], w[i % n * k + j], sum);
    y[i] = sum;
}
torch::Tensor product(torch::Tensor x, torch::Tensor w) {
    auto y = torch::empty({x.size(0), w.size(0)}, x.options());
    int m = x.size(0), k = x.size(1), n = w.size(0), blocks = (m * n + 127) / 128;
    first_half<<<blocks, 128>>>(x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(), m, k, n);
    second_half<<<blocks, 128>>>(x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(), m, k, n);
    return y;
}
""",
    functions=["product"],
)


class ModelNew(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n, k) / k**0.5)

    def forward(self, x):
        return ext.product(x, self.weight)
