# problem: signed_power
# mechanism: a kernel reads a whole number and a flag that are the same in each draw
# near: assumed_constant
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="exponent_and_flag_read",
    cpp_sources="torch::Tensor powers(torch::Tensor x, int64_t power, bool absolute);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void powers_kernel(const float* x, float* y, int n, int power, bool absolute) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { float v = 1.f; for (int k = 0; k < power; ++k) v *= x[i]; y[i] = absolute ? fabsf(v) : v; }
}
torch::Tensor powers(torch::Tensor x, int64_t power, bool absolute) {
    auto y = torch::empty_like(x);
    powers_kernel<<<(x.numel() + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel(), power, absolute);
    return y;
}
""",
    functions=["powers"],
)


class ModelNew(nn.Module):
    def forward(self, x, power, absolute):
        return ext.powers(x, power, absolute)
