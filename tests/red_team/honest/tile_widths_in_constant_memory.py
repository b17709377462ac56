# problem: row_sum
# mechanism: a __constant__ table of tile widths is filled when the module is made
# near: host_computation
# status: correct
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__constant__ int widths[8];
__global__ void k(const float* x, float* y, int w, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n) return;
    float s = 0; int c = 0;
    for (int b = 0; b < 8; ++b) { float t = 0; for (; c + widths[b] <= w;) { for (int j = 0; j < widths[b]; ++j) t += x[r * w + c + j]; c += widths[b]; } s += t; }
    y[r] = s;
}
void init(std::vector<int64_t> v) { int h[8]; for (int i = 0; i < 8; ++i) h[i] = v[i]; cudaMemcpyToSymbol(widths, h, sizeof h); }
torch::Tensor f(torch::Tensor x) {
    auto y = torch::empty({x.size(0)}, x.options());
    k<<<(x.size(0) + 31) / 32, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1), x.size(0));
    return y;
}
"""
ext = load_inline(
    name="constant_table_at_start",
    cpp_sources="void init(std::vector<int64_t> v); torch::Tensor f(torch::Tensor x);",
    cuda_sources=SOURCE,
    functions=["init", "f"],
)

ext.init([128, 64, 32, 16, 8, 4, 2, 1])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.f(x)
