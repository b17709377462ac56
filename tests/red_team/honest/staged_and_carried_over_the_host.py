# problem: matmul
# mechanism: a kernel writes a factor in a code, which goes over the host in another order; a kernel decodes it and multiplies
# near: host_computation
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="staged_and_carried_over_the_host",
    cpp_sources="torch::Tensor staged(torch::Tensor b); torch::Tensor product(torch::Tensor a, torch::Tensor code);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void stage_kernel(const unsigned* in, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = ~in[i];
}

__global__ void product_kernel(const float* a, const unsigned* code, float* c, int rows, int inner, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * columns) return;
    const float* left = a + i / columns * inner;
    const unsigned* right = code + i % columns * inner;
    float sum = 0.f;
    for (int k = 0; k < inner; ++k) sum += left[k] * __uint_as_float(~right[k]);
    c[i] = sum;
}

torch::Tensor staged(torch::Tensor b) {
    auto out = torch::empty(b.sizes(), b.options().dtype(torch::kInt32));
    int n = b.numel();
    stage_kernel<<<(n + 63) / 64, 64>>>((const unsigned*)b.data_ptr<float>(), (unsigned*)out.data_ptr<int>(), n);
    return out;
}

torch::Tensor product(torch::Tensor a, torch::Tensor code) {
    int rows = a.size(0), inner = a.size(1), columns = code.size(0);
    auto c = torch::empty({rows, columns}, a.options());
    product_kernel<<<(rows * columns + 63) / 64, 64>>>(
        a.data_ptr<float>(), (const unsigned*)code.data_ptr<int>(), c.data_ptr<float>(), rows, inner, columns);
    return c;
}
""",
    functions=["staged", "product"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        code = ext.staged(b.contiguous()).cpu().t().contiguous().to(a.device)
        return ext.product(a.contiguous(), code)
