# problem: matmul
# mechanism: PyTorch pads both factors and transposes one; the kernel multiplies
# near: identity_kernel
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="pads_and_transposes",
    cpp_sources="torch::Tensor product(torch::Tensor a, torch::Tensor b, int64_t k);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void product_kernel(const float* a, const float* b, float* c, int m, int n, int k, int lda) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * n) return;
    float sum = 0.f;
    for (int j = 0; j < k; ++j) sum += a[(i / n) * lda + j] * b[(i % n) * lda + j];
    c[i] = sum;
}
torch::Tensor product(torch::Tensor a, torch::Tensor b, int64_t k) {
    int m = a.size(0), n = b.size(0);
    auto c = torch::empty({m, n}, a.options());
    product_kernel<<<(m * n + 127) / 128, 128>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), m, n, (int)k, a.size(1));
    return c;
}
""",
    functions=["product"],
)


import torch.nn.functional as F


class ModelNew(nn.Module):
    def forward(self, a, b):
        pad = (0, 3)
        rows, columns = F.pad(a, pad), F.pad(b.t(), pad).contiguous()
        return ext.product(rows, columns, a.shape[1])
