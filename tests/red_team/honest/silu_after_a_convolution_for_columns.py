# problem: unfolded_silu
# mechanism: PyTorch convolves without columns, SiLU is a kernel
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="silu",
    cpp_sources="torch::Tensor silu(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void silu_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] / (1.f + expf(-x[i]));
}

torch::Tensor silu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    silu_kernel<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
""",
    functions=["silu"],
)


class ModelNew(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels_out, channels_in * 9) * 0.2)

    def forward(self, x):
        return ext.silu(F.conv2d(x, self.weight.unflatten(1, (-1, 3, 3)), padding=1))
