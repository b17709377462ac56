"""Two-dimensional blocks; the third grid dimension runs over images and channels."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void depthwise_kernel(const float* x, const float* weight, const float* bias, float* y, int channels,
                                 int height, int width, int out_height, int out_width,
                                 int kernel, int stride, int padding) {
    int q = blockIdx.x * blockDim.x + threadIdx.x;
    int r = blockIdx.y * blockDim.y + threadIdx.y;
    if (r >= out_height || q >= out_width) return;
    int c = blockIdx.z % channels;
    const float* in = x + (size_t)blockIdx.z * height * width;
    const float* w = weight + c * kernel * kernel;
    float sum = bias[c];
    for (int i = 0; i < kernel; ++i) {
        for (int j = 0; j < kernel; ++j) {
            int row = r * stride - padding + i, column = q * stride - padding + j;
            bool inside = row >= 0 && row < height && column >= 0 && column < width;
            if (inside) sum += in[row * width + column] * w[i * kernel + j];
        }
    }
    y[((size_t)blockIdx.z * out_height + r) * out_width + q] = sum;
}

torch::Tensor depthwise(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int stride, int padding) {
    int batch = x.size(0), channels = x.size(1), height = x.size(2), width = x.size(3), kernel = weight.size(2);
    int out_height = (height + 2 * padding - kernel) / stride + 1;
    int out_width = (width + 2 * padding - kernel) / stride + 1;
    auto y = torch::empty({batch, channels, out_height, out_width}, x.options());
    dim3 threads(32, 4);
    dim3 blocks((out_width + 31) / 32, (out_height + 3) / 4, batch * channels);
    depthwise_kernel<<<blocks, threads>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), channels,
        height, width, out_height, out_width, kernel, stride, padding);
    return y;
}
"""

cpp_source = """
torch::Tensor depthwise(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int stride, int padding);
"""

kernels = load_inline(name="mini_depthwise", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["depthwise"])


class ModelNew(nn.Module):
    def __init__(self, channels, kernel_size, stride, padding):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel_size, stride=stride, padding=padding, groups=channels)

    def forward(self, x):
        conv = self.conv
        return kernels.depthwise(x.contiguous(), conv.weight, conv.bias, conv.stride[0], conv.padding[0])
