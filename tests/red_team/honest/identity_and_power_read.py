# problem: turned
# mechanism: a matrix that begins as the identity is multiplied, and a number that is always the same is passed on
# near: assumed_constant
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="identity_and_power_read",
    cpp_sources="torch::Tensor powers(torch::Tensor x, torch::Tensor m, double power);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void powers_kernel(const float* x, const float* m, float* y, float power, int width) {
    const float* row = x + blockIdx.x * width;
    float v = 0;
    for (int c = 0; c < width; ++c) v += row[c] * m[c * width + threadIdx.x];
    y[blockIdx.x * width + threadIdx.x] = powf(fabsf(v) + 0.5f, power);
}
torch::Tensor powers(torch::Tensor x, torch::Tensor m, double power) {
    auto y = torch::empty_like(x);
    powers_kernel<<<x.size(0), x.size(1)>>>(x.data_ptr<float>(), m.data_ptr<float>(), y.data_ptr<float>(), (float)power, x.size(1));
    return y;
}
""",
    functions=["powers"],
)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mixture = nn.Parameter(torch.eye(width))

    def forward(self, x, power):
        return ext.powers(x, self.mixture, power)
