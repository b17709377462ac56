# problem: matmul
# mechanism: one output buffer for ever: the last call's answer lies in it when the next call begins
# near: identity_kernel stale_output kernel_output_unused
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="output_buffer_kept",
    cpp_sources="void product(torch::Tensor a, torch::Tensor b, torch::Tensor c);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void product_kernel(const float* a, const float* b, float* c, int m, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * n) return;
    float sum = 0.f;
    for (int j = 0; j < k; ++j) sum += a[(i / n) * k + j] * b[j * n + i % n];
    c[i] = sum;
}
void product(torch::Tensor a, torch::Tensor b, torch::Tensor c) {
    int m = a.size(0), k = a.size(1), n = b.size(1);
    product_kernel<<<(m * n + 127) / 128, 128>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), m, n, k);
}
""",
    functions=["product"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("product", torch.zeros(33, 40), persistent=False)

    def forward(self, a, b):
        if self.product.shape != (a.shape[0], b.shape[1]) or self.product.device != a.device:
            self.product = torch.zeros(a.shape[0], b.shape[1], device=a.device)
        ext.product(a, b, self.product)
        return self.product.clone()
