# problem: lower_triangle
# mechanism: in place on a clone: half of the answer is there before the launch
# near: identity_kernel
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="zeroes_above_the_diagonal",
    cpp_sources="torch::Tensor lower_(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void lower_kernel(float* data, int n) {
    int row = blockIdx.x, column = threadIdx.x;
    if (column > row && column < n) data[row * n + column] = 0.f;
}
torch::Tensor lower_(torch::Tensor x) {
    lower_kernel<<<x.size(0), 64>>>(x.data_ptr<float>(), x.size(1));
    return x;
}
""",
    functions=["lower_"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.lower_(x.clone())
