# problem: matmul
# mechanism: each thread computes four columns in registers
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="matmul_registers",
    cpp_sources="torch::Tensor matmul(torch::Tensor a, torch::Tensor b);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void matmul_kernel(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                              int m, int n, int k) {
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (row >= m) return;
    float sums[4] = {0.f, 0.f, 0.f, 0.f};
    for (int i = 0; i < k; ++i) {
        float left = a[row * k + i];
        for (int j = 0; j < 4; ++j)
            if (first + j < n) sums[j] = fmaf(left, b[i * n + first + j], sums[j]);
    }
    for (int j = 0; j < 4; ++j)
        if (first + j < n) c[row * n + first + j] = sums[j];
}

torch::Tensor matmul(torch::Tensor a, torch::Tensor b) {
    int m = a.size(0), k = a.size(1), n = b.size(1);
    auto c = torch::empty({m, n}, a.options());
    dim3 block(8, 16), grid((n + 31) / 32, (m + 15) / 16);
    matmul_kernel<<<grid, block>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), m, n, k);
    return c;
}
""",
    functions=["matmul"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return ext.matmul(a, b)
