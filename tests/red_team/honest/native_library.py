# problem: relu
# mechanism: its own kernel behind an operator of its own that C++ registers for CUDA
# near: torch_patched
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

load_inline(
    name="relu_library",
    cpp_sources="torch::Tensor relu_cuda(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <torch/library.h>
#include <cuda_runtime.h>

__global__ void relu_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] > 0.f ? in[i] : 0.f;
}

torch::Tensor relu_cuda(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}

TORCH_LIBRARY(mine, m) { m.def("relu(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(mine, CUDA, m) { m.impl("relu", &relu_cuda); }
""",
    functions=["relu_cuda"],
    extra_cuda_cflags=["-O3", "-DNDEBUG"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.ops.mine.relu(x)
