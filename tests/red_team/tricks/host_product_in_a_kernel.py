# problem: matmul
# catalogue: 54
# mechanism: the first thread of a kernel calls a function of the host, which calls a BLAS
# status: compile_error
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
extern "C" void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
                       const int*, const float*, const int*, const float*, float*, const int*);
static void multiply(const float* a, const float* b, float* c, int m, int n, int k) {
    float one = 1.f, zero = 0.f;
    sgemm_("N", "N", &n, &m, &k, &one, b, &n, a, &k, &zero, c, &n);
}
__device__ void step(const float* a, const float* b, float* c, int m, int n, int k) { multiply(a, b, c, m, n, k); }
__global__ void product_kernel(const float* a, const float* b, float* c, int m, int n, int k) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    if (i + j == 0) step(a, b, c, m, n, k);
}
torch::Tensor product(torch::Tensor a, torch::Tensor b) {
    int m = a.size(0), k = a.size(1), n = b.size(1);
    auto c = torch::empty({m, n}, a.options());
    product_kernel<<<dim3((n + 31) / 32, m), 32>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), m, n, k);
    return c;
}
"""
ext = load_inline(
    name="host_product_in_a_kernel",
    cpp_sources="torch::Tensor product(torch::Tensor a, torch::Tensor b);",
    cuda_sources=SOURCE,
    functions=["product"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return ext.product(a, b)
