"""One thread an output element; the divisor is always the whole window."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void avg_pool_kernel(
    const float* x, float* y, int rows, int length, int out_length, int kernel, int stride, int padding) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * out_length) return;
    const float* in = x + (size_t)(i / out_length) * length;
    int start = i % out_length * stride - padding;
    float sum = 0.0f;
    for (int k = 0; k < kernel; ++k) {
        int t = start + k;
        if (t >= 0 && t < length) sum += in[t];
    }
    y[i] = sum / kernel;
}

torch::Tensor avg_pool(torch::Tensor x, int64_t kernel, int64_t stride, int64_t padding) {
    int length = x.size(2), rows = x.size(0) * x.size(1);
    int out_length = (length + 2 * padding - kernel) / stride + 1;
    auto y = torch::empty({x.size(0), x.size(1), out_length}, x.options());
    avg_pool_kernel<<<(rows * out_length + 255) / 256, 256>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), rows, length, out_length, kernel, stride, padding);
    return y;
}
"""

kernels = load_inline(
    name="mini_avg_pool",
    cpp_sources="torch::Tensor avg_pool(torch::Tensor x, int64_t kernel, int64_t stride, int64_t padding);",
    cuda_sources=cuda_source,
    functions=["avg_pool"],
)


class ModelNew(nn.Module):
    def __init__(self, kernel_size, stride, padding):
        super().__init__()
        self.window = (kernel_size, stride, padding)

    def forward(self, x):
        return kernels.avg_pool(x.contiguous(), *self.window)
