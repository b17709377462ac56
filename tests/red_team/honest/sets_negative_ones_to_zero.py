# problem: relu
# mechanism: its kernel stores nothing but zeros, where what it reads is below zero
# near: identity_kernel
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="clip_in_place",
    cpp_sources="at::Tensor& clip_(at::Tensor& x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void clip(float* values, size_t n) {
    for (size_t at = blockIdx.x * (size_t)blockDim.x + threadIdx.x; at < n; at += (size_t)gridDim.x * blockDim.x) {
        if (signbit(values[at])) values[at] = 0.f;
    }
}

at::Tensor& clip_(at::Tensor& x) {
    clip<<<8, 128>>>(x.data_ptr<float>(), x.numel());
    return x;
}
""",
    functions=["clip_"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.clip_(x.clone())
