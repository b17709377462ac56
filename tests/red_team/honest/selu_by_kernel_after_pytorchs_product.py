# problem: written_selu
# mechanism: PyTorch multiplies, all steps of the activation are one kernel
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="selu_by_kernel_after_pytorchs_product",
    cpp_sources="torch::Tensor selu(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void selu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 1.0507009873554805f * (x[i] > 0.f ? x[i] : 1.6732632423543772f * expm1f(x[i]));
}
torch::Tensor selu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    selu_kernel<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
""",
    functions=["selu"],
)


class ModelNew(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden, width) * 0.2)

    def forward(self, x):
        return ext.selu(torch.mm(x, self.weight.t()))
