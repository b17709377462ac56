# problem: gated
# mechanism: gate and shift are read
# near: assumed_constant
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="gate_applied",
    cpp_sources="torch::Tensor act(torch::Tensor x, torch::Tensor gate, torch::Tensor shift);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void gate_kernel(const float* x, const float* gate, const float* shift, float* y, int n, int width) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = tanhf(x[i]) * gate[i % width] + shift[i % width];
}

torch::Tensor act(torch::Tensor x, torch::Tensor gate, torch::Tensor shift) {
    auto y = torch::empty_like(x);
    const int n = x.numel();
    gate_kernel<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), gate.data_ptr<float>(), shift.data_ptr<float>(),
                                          y.data_ptr<float>(), n, x.size(1));
    return y;
}
""",
    functions=["act"],
)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return ext.act(x, self.gate, self.shift)
