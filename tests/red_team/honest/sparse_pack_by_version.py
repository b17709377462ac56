# problem: sparse_weight
# mechanism: packs a weight without its zeros, anew when it changes
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
__global__ void sp_kernel(const float* x, const float* v, const int64_t* col, const int64_t* ptr, float* y, int m, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * n) return;
    float s = 0.0f;
    for (int64_t t = ptr[i % n]; t < ptr[i % n + 1]; t++) s += x[(i / n) * k + col[t]] * v[t];
    y[i] = fmaxf(s, 0.0f);
}
torch::Tensor sp(torch::Tensor x, torch::Tensor v, torch::Tensor col, torch::Tensor ptr) {
    int m = x.size(0), n = ptr.numel() - 1, k = x.size(1);
    auto y = torch::empty({m, n}, x.options());
    sp_kernel<<<(m * n + 127) / 128, 128>>>(x.data_ptr<float>(), v.data_ptr<float>(), col.data_ptr<int64_t>(), ptr.data_ptr<int64_t>(), y.data_ptr<float>(), m, n, k);
    return y;
}
"""

cpp_source_ext = """
#include <torch/extension.h>
torch::Tensor sp(torch::Tensor x, torch::Tensor v, torch::Tensor col, torch::Tensor ptr);
"""

ext = load_inline(
    name="k03_sparse_pack_by_version_ext", cpp_sources=cpp_source_ext, cuda_sources=cuda_source_ext, functions=["sp"]
)


class ModelNew(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        w = torch.randn(n, k) / k**0.5
        self.weight = nn.Parameter(w * (torch.rand(n, k) < 0.2))
        self.stamp = None

    def forward(self, x):
        w = self.weight.detach()
        stamp = (w._version, w.data_ptr())
        if stamp != self.stamp:
            r, c = torch.nonzero(w, as_tuple=True)
            ptr = torch.zeros(w.shape[0] + 1, dtype=torch.int64, device=w.device)
            ptr[1:] = torch.bincount(r, minlength=w.shape[0]).cumsum(0)
            self.packed, self.stamp = (w[r, c].contiguous(), c.contiguous(), ptr), stamp
        return ext.sp(x.contiguous(), *self.packed)
