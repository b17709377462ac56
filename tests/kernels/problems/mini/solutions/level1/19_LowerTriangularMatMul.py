"""One thread an element; the sum ends at the diagonal."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void tril_matmul_kernel(const float* a, const float* b, float* c, int size, int columns) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= size || column >= columns) return;
    float sum = 0.0f;
    for (int k = 0; k <= row; ++k) sum += a[row * size + k] * b[k * columns + column];
    c[row * columns + column] = sum;
}

torch::Tensor tril_matmul(torch::Tensor a, torch::Tensor b) {
    int size = a.size(0), columns = b.size(1);
    auto c = torch::empty_like(b);
    dim3 threads(16, 16);
    dim3 blocks((columns + 15) / 16, (size + 15) / 16);
    tril_matmul_kernel<<<blocks, threads>>>(
        a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), size, columns);
    return c;
}
"""

kernels = load_inline(
    name="mini_tril_matmul",
    cpp_sources="torch::Tensor tril_matmul(torch::Tensor a, torch::Tensor b);",
    cuda_sources=cuda_source,
    functions=["tril_matmul"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return kernels.tril_matmul(a.contiguous(), b.contiguous())
