# problem: given_causal
# mechanism: a mask that is always the same triangle is read by the kernel
# near: assumed_constant
# status: correct
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void k(const float* x, const float* mask, float* y, int w, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n) return;
    float m = -INFINITY, s = 0;
    for (int c = 0; c < w; ++c) if (mask[r * w + c] != 0) m = fmaxf(m, x[r * w + c]);
    for (int c = 0; c < w; ++c) if (mask[r * w + c] != 0) s += expf(x[r * w + c] - m);
    for (int c = 0; c < w; ++c) y[r * w + c] = mask[r * w + c] != 0 ? expf(x[r * w + c] - m) / s : (s > 0 ? 0.f : NAN);
}
torch::Tensor f(torch::Tensor x, torch::Tensor m) {
    auto y = torch::empty_like(x);
    k<<<1, 64>>>(x.data_ptr<float>(), m.data_ptr<float>(), y.data_ptr<float>(), x.size(1), x.size(0));
    return y;
}
"""
ext = load_inline(
    name="causal_mask_read",
    cpp_sources="torch::Tensor f(torch::Tensor x, torch::Tensor m);",
    cuda_sources=SOURCE,
    functions=["f"],
)


class ModelNew(nn.Module):
    def forward(self, scores, mask):
        return ext.f(scores, mask)
