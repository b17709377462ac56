import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="gains",
    cpp_sources="torch::Tensor put_on(torch::Tensor x); torch::Tensor take_off(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void put_on_kernel(const float* x, float* y, int width, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * (1 + i / width % 5);
}

__global__ void take_off_kernel(const float* x, float* y, int width, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] / (1 + i / width % 5);
}

torch::Tensor put_on(torch::Tensor x) {
    auto in = x.contiguous(), y = torch::empty_like(in);
    int n = in.numel();
    put_on_kernel<<<(n + 127) / 128, 128>>>(in.data_ptr<float>(), y.data_ptr<float>(), in.size(1), n);
    return y;
}

torch::Tensor take_off(torch::Tensor x) {
    auto in = x.contiguous(), y = torch::empty_like(in);
    int n = in.numel();
    take_off_kernel<<<(n + 127) / 128, 128>>>(in.data_ptr<float>(), y.data_ptr<float>(), in.size(1), n);
    return y;
}
""",
    functions=["put_on", "take_off"],
)
