# problem: spread_pixels
# mechanism: a kernel that computes nothing moves the elements itself
# near: identity_kernel
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="moved_by_the_kernel",
    cpp_sources="torch::Tensor spread(torch::Tensor x, int64_t h, int64_t w);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void spread_kernel(const float* x, float* y, int n, int h, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int col = i % (2 * w), row = i / (2 * w) % (2 * h), plane = i / (4 * w * h);
    y[i] = x[((plane * 4 + row % 2 * 2 + col % 2) * h + row / 2) * w + col / 2];
}
torch::Tensor spread(torch::Tensor x, int64_t h, int64_t w) {
    auto y = torch::empty({x.size(0), x.numel() / x.size(0) / (4 * h * w), 2 * h, 2 * w}, x.options());
    spread_kernel<<<(x.numel() + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel(), h, w);
    return y;
}
""",
    functions=["spread"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.spread(x, *x.shape[2:])
