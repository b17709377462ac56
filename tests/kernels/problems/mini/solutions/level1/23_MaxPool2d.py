"""One thread an output element."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void max_pool_kernel(const float* x, float* y, int planes, int height, int width,
                                int out_height, int out_width, int kernel, int stride, int padding) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= planes * out_height * out_width) return;
    int left = i % out_width * stride - padding;
    int top = i / out_width % out_height * stride - padding;
    const float* in = x + (size_t)(i / (out_width * out_height)) * height * width;
    int right = min(left + kernel, width), bottom = min(top + kernel, height);
    float best = -INFINITY;
    for (int r = max(top, 0); r < bottom; ++r)
        for (int q = max(left, 0); q < right; ++q) best = fmaxf(best, in[r * width + q]);
    y[i] = best;
}

torch::Tensor max_pool(torch::Tensor x, int kernel, int stride, int padding) {
    int height = x.size(2), width = x.size(3);
    int out_height = (height + 2 * padding - kernel) / stride + 1;
    int out_width = (width + 2 * padding - kernel) / stride + 1;
    auto y = torch::empty({x.size(0), x.size(1), out_height, out_width}, x.options());
    int planes = x.size(0) * x.size(1), n = y.numel();
    max_pool_kernel<<<(n + 255) / 256, 256>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), planes, height, width, out_height, out_width,
        kernel, stride, padding);
    return y;
}
"""

kernels = load_inline(
    name="mini_max_pool",
    cpp_sources="torch::Tensor max_pool(torch::Tensor x, int kernel, int stride, int padding);",
    cuda_sources=cuda_source,
    functions=["max_pool"],
)


class ModelNew(nn.Module):
    def __init__(self, kernel_size, stride, padding):
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, x):
        return kernels.max_pool(x.contiguous(), self.kernel_size, self.stride, self.padding)
