# problem: pooled_norm
# mechanism: the norm is one operator of PyTorch's, the mean of each sequence is a kernel
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="pool",
    cpp_sources="torch::Tensor pool(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void pool_kernel(const float* x, float* y, int length, int width, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    x += (size_t)(i / width) * length * width + i % width;
    float sum = 0.f;
    for (int j = 0; j < length; ++j) sum += x[(size_t)j * width];
    y[i] = sum / length;
}

torch::Tensor pool(torch::Tensor x) {
    auto y = torch::empty({x.size(0), x.size(2)}, x.options());
    int n = y.numel();
    pool_kernel<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1), x.size(2), n);
    return y;
}
""",
    functions=["pool"],
)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(width) + 0.5)
        self.shift = nn.Parameter(torch.randn(width))

    def forward(self, x):
        return ext.pool(F.layer_norm(x, self.gain.shape, self.gain, self.shift))
