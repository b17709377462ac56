# problem: blocks_made_full
# mechanism: the reference itself makes the blocks
# near: wrong_elsewhere
# status: correct
import torch
import torch.nn as nn
import torch.nn.functional as F
import math
from torch.utils.cpp_extension import load_inline

cuda_source_ext = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void bd_kernel(const float* x, const float* w, float* y, int m, int d, int c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * d) return;
    int r = i / d, col = i % d, g = col / c; float s = 0.0f;
    for (int t = 0; t < c; t++) s += x[r * d + g * c + t] * w[(g * c + t) * c + col % c];
    y[i] = fmaxf(s, 0.0f);
}
torch::Tensor bd(torch::Tensor x, torch::Tensor w) {
    auto y = torch::empty_like(x); int m = x.size(0), d = x.size(1);
    bd_kernel<<<(m * d + 127) / 128, 128>>>(x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(), m, d, w.size(1));
    return y;
}
"""

cpp_source_ext = """
#include <torch/extension.h>
torch::Tensor bd(torch::Tensor x, torch::Tensor w);
"""

ext = load_inline(
    name="m04_grouped_from_block_diag_ext", cpp_sources=cpp_source_ext, cuda_sources=cuda_source_ext, functions=["bd"]
)


class ModelNew(nn.Module):
    def __init__(self, g, c):
        super().__init__()
        self.blocks = nn.Parameter(torch.randn(g, c, c) / c**0.5)

    def forward(self, x):
        return ext.bd(x.contiguous(), self.blocks)
