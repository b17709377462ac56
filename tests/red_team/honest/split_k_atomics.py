# problem: matmul
# mechanism: partial sums by atomicAdd into zeroed memory: not bit-stable, within tolerance
# near: unstable_output
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="matmul_atomic",
    cpp_sources="torch::Tensor matmul(torch::Tensor a, torch::Tensor b);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void matmul_kernel(const float* a, const float* b, float* c, int m, int n, int k, int chunk) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || col >= n) return;
    int begin = blockIdx.z * chunk, end = min(k, begin + chunk);
    float sum = 0.f;
    for (int i = begin; i < end; ++i) sum += a[row * k + i] * b[i * n + col];
    atomicAdd(&c[row * n + col], sum);
}

torch::Tensor matmul(torch::Tensor a, torch::Tensor b) {
    int m = a.size(0), k = a.size(1), n = b.size(1), chunk = 16;
    auto c = torch::zeros({m, n}, a.options());
    dim3 block(8, 8), grid((n + 7) / 8, (m + 7) / 8, (k + chunk - 1) / chunk);
    matmul_kernel<<<grid, block>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), m, n, k, chunk);
    return c;
}
""",
    functions=["matmul"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return ext.matmul(a, b)
