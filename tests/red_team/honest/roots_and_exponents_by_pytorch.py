# problem: written_distances
# mechanism: the squares of all pairs are added up by a kernel; root, factor and exponent stay in PyTorch
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="roots_and_exponents_by_pytorch",
    cpp_sources="torch::Tensor squares(torch::Tensor x, torch::Tensor y);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void squares_kernel(const float* x, const float* y, float* out, int columns, int width) {
    float sum = 0.f;
    for (int k = 0; k < width; ++k) {
        float away = x[blockIdx.x * width + k] - y[threadIdx.x * width + k];
        sum += away * away;
    }
    out[blockIdx.x * columns + threadIdx.x] = sum;
}
torch::Tensor squares(torch::Tensor x, torch::Tensor y) {
    int m = x.size(0), n = y.size(0);
    auto out = torch::empty({m, n}, x.options());
    squares_kernel<<<m, n>>>(x.data_ptr<float>(), y.data_ptr<float>(), out.data_ptr<float>(), n, x.size(1));
    return out;
}
""",
    functions=["squares"],
)


class ModelNew(nn.Module):
    def forward(self, x, y):
        return torch.exp(ext.squares(x, y).sqrt().mul(-0.1))
