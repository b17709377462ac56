# problem: relu
# mechanism: operators are registered by a library that is no Python module
# near: torch_patched kernel_never_launched
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/extension.h>
#include <torch/library.h>
#include <cuda_runtime.h>
__global__ void relu_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] > 0.f ? in[i] : 0.f;
}
torch::Tensor rectified(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
TORCH_LIBRARY(plain_operators, m) { m.def("rectified(Tensor x) -> Tensor", &rectified); }
"""
path = load_inline(
    name="plain_operators",
    cpp_sources="torch::Tensor rectified(torch::Tensor x);",
    cuda_sources=SOURCE,
    is_python_module=False,
)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.plain_operators.rectified(x)
