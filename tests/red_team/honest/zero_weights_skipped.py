# problem: triangle_in_a_weight
# mechanism: each weight is compared with zero
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
__global__ void mix_kernel(const float* w, const float* x, float* y, int t, int c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int ch = i % c, r = (i / c) % t, b = i / (c * t);
    float s = 0.0f;
    for (int j = 0; j < t; j++) { float v = w[r * t + j]; if (v != 0.0f) s += v * x[(b * t + j) * c + ch]; }
    y[i] = tanhf(s);
}
torch::Tensor mix(torch::Tensor w, torch::Tensor x) {
    auto y = torch::empty_like(x); int n = x.numel();
    mix_kernel<<<(n + 127) / 128, 128>>>(w.data_ptr<float>(), x.data_ptr<float>(), y.data_ptr<float>(), x.size(1), x.size(2), n);
    return y;
}
"""

cpp_source_ext = """
#include <torch/extension.h>
torch::Tensor mix(torch::Tensor w, torch::Tensor x);
"""

ext = load_inline(
    name="k04_skip_zero_weight_ext", cpp_sources=cpp_source_ext, cuda_sources=cuda_source_ext, functions=["mix"]
)


class ModelNew(nn.Module):
    def __init__(self, t):
        super().__init__()
        self.mix = nn.Parameter(torch.tril(torch.randn(t, t)) / t**0.5)

    def forward(self, x):
        return ext.mix(self.mix, x.contiguous())
