"""One thread an element; the batch is the third dimension of the grid."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void bmm_kernel(const float* a, const float* b, float* c, int rows, int inner, int columns) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns) return;
    const float* left = a + ((size_t)blockIdx.z * rows + row) * inner;
    const float* right = b + (size_t)blockIdx.z * inner * columns + column;
    float sum = 0.0f;
    for (int k = 0; k < inner; ++k) sum = fmaf(left[k], right[k * columns], sum);
    c[((size_t)blockIdx.z * rows + row) * columns + column] = sum;
}

torch::Tensor bmm(torch::Tensor a, torch::Tensor b) {
    int batch = a.size(0), rows = a.size(1), inner = a.size(2), columns = b.size(2);
    auto c = torch::empty({batch, rows, columns}, a.options());
    dim3 threads(32, 8);
    dim3 blocks((columns + 31) / 32, (rows + 7) / 8, batch);
    bmm_kernel<<<blocks, threads>>>(
        a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), rows, inner, columns);
    return c;
}
"""

kernels = load_inline(
    name="mini_bmm",
    cpp_sources="torch::Tensor bmm(torch::Tensor a, torch::Tensor b);",
    cuda_sources=cuda_source,
    functions=["bmm"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return kernels.bmm(a.contiguous(), b.contiguous())
