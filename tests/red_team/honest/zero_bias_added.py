# problem: zero_bias
# mechanism: a bias that begins as zeros is added
# near: assumed_constant
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="zero_bias_added",
    cpp_sources="torch::Tensor linear(torch::Tensor x, torch::Tensor w, torch::Tensor b);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void linear_kernel(const float* x, const float* w, const float* b, float* y, int rows, int in, int out) {
    const int o = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
    if (o >= out) return;
    float sum = b[o];
    for (int k = 0; k < in; ++k) sum += x[r * in + k] * w[o * in + k];
    y[r * out + o] = sum;
}

torch::Tensor linear(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    auto y = torch::empty({x.size(0), w.size(0)}, x.options());
    const dim3 grid((w.size(0) + 31) / 32, x.size(0));
    linear_kernel<<<grid, 32>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), x.size(0),
                                x.size(1), w.size(0));
    return y;
}
""",
    functions=["linear"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(32, 24)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x):
        return ext.linear(x, self.linear.weight, self.linear.bias)
