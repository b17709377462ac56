# problem: integer_weight
# mechanism: integers that half precision holds exactly
# near: precision_downgrade
# status: correct
import torch
import torch.nn as nn
import torch.nn.functional as F
import math
from torch.utils.cpp_extension import load_inline

cuda_source_ext = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <cuda_fp16.h>
__global__ void q_kernel(const float* x, const signed char* q, const float* s, float* y, int m, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * n) return;
    float acc = 0.0f;
    for (int t = 0; t < k; t++) { __half w = __int2half_rn((int)q[(i % n) * k + t]); acc += x[(i / n) * k + t] * __half2float(w); }
    y[i] = acc * s[i % n];
}
torch::Tensor qmm(torch::Tensor x, torch::Tensor q, torch::Tensor s) {
    int m = x.size(0), k = x.size(1), n = q.size(0);
    auto y = torch::empty({m, n}, x.options());
    q_kernel<<<(m * n + 127) / 128, 128>>>(x.data_ptr<float>(), (const signed char*)q.data_ptr<int8_t>(), s.data_ptr<float>(), y.data_ptr<float>(), m, n, k);
    return y;
}
"""

cpp_source_ext = """
#include <torch/extension.h>
torch::Tensor qmm(torch::Tensor x, torch::Tensor q, torch::Tensor s);
"""

ext = load_inline(
    name="h08_exact_half_weights_ext", cpp_sources=cpp_source_ext, cuda_sources=cuda_source_ext, functions=["qmm"]
)


class ModelNew(nn.Module):
    def forward(self, x, q, scale):
        return ext.qmm(x.contiguous(), q.contiguous(), scale.contiguous())
