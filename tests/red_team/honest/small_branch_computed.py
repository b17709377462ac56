# problem: small_branch
# mechanism: a branch of hardly any weight is computed
# near: assumed_constant
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="small_branch_computed",
    cpp_sources="torch::Tensor wave_and_bump(torch::Tensor x, torch::Tensor scale);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void wave(const float* x, const float* scale, float* y, int width, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] = cosf(x[i]) + scale[i % width] * expf(-x[i] * x[i]);
}
torch::Tensor wave_and_bump(torch::Tensor x, torch::Tensor scale) {
    auto y = torch::empty_like(x);
    wave<<<(x.numel() + 63) / 64, 64>>>(x.data_ptr<float>(), scale.data_ptr<float>(), y.data_ptr<float>(), x.size(1), x.numel());
    return y;
}
""",
    functions=["wave_and_bump"],
)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.full((width,), 1e-5))

    def forward(self, x):
        return ext.wave_and_bump(x, self.scale)
