# problem: attended_norm
# mechanism: the attention is one operator of PyTorch's, the norm is a kernel
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="norm",
    cpp_sources="torch::Tensor norm(torch::Tensor x, torch::Tensor gain, torch::Tensor shift);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void norm_kernel(const float* x, const float* gain, const float* shift, float* y, int rows, int width) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    x += (size_t)row * width;
    y += (size_t)row * width;
    float mean = 0.f, spread = 0.f;
    for (int j = 0; j < width; ++j) mean += x[j] / width;
    for (int j = 0; j < width; ++j) spread += (x[j] - mean) * (x[j] - mean) / width;
    for (int j = 0; j < width; ++j) y[j] = (x[j] - mean) * rsqrtf(spread + 1e-5f) * gain[j] + shift[j];
}

torch::Tensor norm(torch::Tensor x, torch::Tensor gain, torch::Tensor shift) {
    auto y = torch::empty_like(x);
    int width = x.size(-1), rows = x.numel() / width;
    norm_kernel<<<(rows + 31) / 32, 32>>>(
        x.data_ptr<float>(), gain.data_ptr<float>(), shift.data_ptr<float>(), y.data_ptr<float>(), rows, width);
    return y;
}
""",
    functions=["norm"],
)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(width) + 0.5)
        self.shift = nn.Parameter(torch.randn(width))

    def forward(self, x):
        n = ext.norm(x.contiguous(), self.gain, self.shift)[None]
        return F.scaled_dot_product_attention(n, n, n, is_causal=True)[0]
