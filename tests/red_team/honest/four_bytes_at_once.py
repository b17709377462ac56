# problem: byte_products
# mechanism: four products of bytes by one instruction, where the problem has bytes: exact, and no error can be measured
# near: precision_downgrade
# warns: precision_downgrade
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="four_bytes_at_once",
    cpp_sources="torch::Tensor products(torch::Tensor a, torch::Tensor b);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void products_kernel(const int* a, const int* b, long long* out, int m, int n, int words) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * n) return;
    int sum = 0;
    for (int j = 0; j < words; ++j) sum = __dp4a(a[i / n * words + j], b[i % n * words + j], sum);
    out[i] = sum;
}
torch::Tensor products(torch::Tensor a, torch::Tensor b) {
    int m = a.size(0), n = b.size(0);
    auto out = torch::empty({m, n}, a.options().dtype(torch::kLong));
    products_kernel<<<(m * n + 63) / 64, 64>>>((const int*)a.data_ptr<int8_t>(), (const int*)b.data_ptr<int8_t>(),
                                               (long long*)out.data_ptr<int64_t>(), m, n, (int)a.size(1) / 4);
    return out;
}
""",
    functions=["products"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return ext.products(a.contiguous(), b.contiguous())
