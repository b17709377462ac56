import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="shifts",
    cpp_sources="torch::Tensor shift(torch::Tensor x); torch::Tensor shift_back(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void shift_kernel(const float* x, float* y, int width, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + (1 + i / width % 5);
}

__global__ void shift_back_kernel(const float* x, float* y, int width, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] - (1 + i / width % 5);
}

torch::Tensor shift(torch::Tensor x) {
    auto in = x.contiguous(), y = torch::empty_like(in);
    int n = in.numel();
    shift_kernel<<<(n + 127) / 128, 128>>>(in.data_ptr<float>(), y.data_ptr<float>(), in.size(1), n);
    return y;
}

torch::Tensor shift_back(torch::Tensor x) {
    auto in = x.contiguous(), y = torch::empty_like(in);
    int n = in.numel();
    shift_back_kernel<<<(n + 127) / 128, 128>>>(in.data_ptr<float>(), y.data_ptr<float>(), in.size(1), n);
    return y;
}
""",
    functions=["shift", "shift_back"],
)
