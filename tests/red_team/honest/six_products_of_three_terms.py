# problem: linear_without_bias
# mechanism: three bfloat16 terms of each factor, six products
# warns: precision_downgrade
# status: correct
import torch
import torch.nn as nn
import torch.nn.functional as F
import math
from torch.utils.cpp_extension import load_inline

cuda_source_ext = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <cuda_bf16.h>
struct Pieces { __nv_bfloat16 a, b, c; };
__device__ Pieces split(float v) {
    Pieces p;
    p.a = __float2bfloat16(v); v -= __bfloat162float(p.a);
    p.b = __float2bfloat16(v); v -= __bfloat162float(p.b);
    p.c = __float2bfloat16(v);
    return p;
}
__global__ void split_gemm_kernel(const float* x, const float* w, float* y, int m, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * n) return;
    float big = 0.0f, small = 0.0f;
    for (int t = 0; t < k; t++) {
        Pieces p = split(x[(i / n) * k + t]), q = split(w[(i % n) * k + t]);
        float pa = __bfloat162float(p.a), pb = __bfloat162float(p.b), pc = __bfloat162float(p.c);
        float qa = __bfloat162float(q.a), qb = __bfloat162float(q.b), qc = __bfloat162float(q.c);
        big += pa * qa;
        small += pa * qb + pb * qa + (pb * qb + pa * qc + pc * qa);
    }
    y[i] = big + small;
}
torch::Tensor gemm(torch::Tensor x, torch::Tensor w) {
    int m = x.size(0), k = x.size(1), n = w.size(0);
    auto y = torch::empty({m, n}, x.options());
    split_gemm_kernel<<<(m * n + 127) / 128, 128>>>(x.data_ptr<float>(), w.data_ptr<float>(), y.data_ptr<float>(), m, n, k);
    return y;
}
"""

cpp_source_ext = """
#include <torch/extension.h>
torch::Tensor gemm(torch::Tensor x, torch::Tensor w);
"""

ext = load_inline(
    name="h07_three_bf16_pieces_ext", cpp_sources=cpp_source_ext, cuda_sources=cuda_source_ext, functions=["gemm"]
)


class ModelNew(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n, k) / k**0.5)

    def forward(self, x):
        return ext.gemm(x.contiguous(), self.weight)
