"""One thread an output element."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void conv1d_kernel(const float* x, const float* weight, const float* bias, float* y,
                              int batch, int in_channels, int length, int out_channels, int out_length,
                              int kernel, int stride, int dilation) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= batch * out_channels * out_length) return;
    int t = i % out_length;
    int o = i / out_length % out_channels;
    int n = i / (out_length * out_channels);
    float sum = bias[o];
    for (int c = 0; c < in_channels; ++c) {
        const float* in = x + (size_t)(n * in_channels + c) * length + t * stride;
        const float* w = weight + (o * in_channels + c) * kernel;
        for (int k = 0; k < kernel; ++k) sum += w[k] * in[k * dilation];
    }
    y[i] = sum;
}

torch::Tensor conv1d(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t stride, int64_t dilation) {
    int batch = x.size(0), in_channels = x.size(1), length = x.size(2);
    int out_channels = weight.size(0), kernel = weight.size(2);
    int out_length = (length - dilation * (kernel - 1) - 1) / stride + 1;
    auto y = torch::empty({batch, out_channels, out_length}, x.options());
    int n = y.numel();
    conv1d_kernel<<<(n + 127) / 128, 128>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(),
        batch, in_channels, length, out_channels, out_length, kernel, stride, dilation);
    return y;
}
"""

cpp_source = """
torch::Tensor conv1d(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t stride, int64_t dilation);
"""

kernels = load_inline(name="mini_conv1d", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["conv1d"])


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, dilation):
        super().__init__()
        self.conv = nn.Conv1d(in_channels, out_channels, kernel_size, stride=stride, dilation=dilation)
        nn.init.normal_(self.conv.bias, std=0.5)

    def forward(self, x):
        conv = self.conv
        return kernels.conv1d(x.contiguous(), conv.weight, conv.bias, conv.stride[0], conv.dilation[0])
