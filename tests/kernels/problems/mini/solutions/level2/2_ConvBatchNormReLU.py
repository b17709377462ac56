"""One thread an output element; the normalisation is folded into a scale and a shift."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void conv_bn_relu_kernel(const float* x, const float* filter, const float* mean, const float* var,
                                    const float* weight, const float* bias, float* y, int n, int in_channels,
                                    int out_channels, int height, int width, int kernel, int padding,
                                    int out_height, int out_width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int q = i % out_width, r = i / out_width % out_height;
    int o = i / (out_width * out_height) % out_channels, image = i / (out_width * out_height * out_channels);
    float sum = 0.0f;
    for (int c = 0; c < in_channels; ++c) {
        const float* in = x + (size_t)(image * in_channels + c) * height * width;
        const float* f = filter + (o * in_channels + c) * kernel * kernel;
        for (int a = 0; a < kernel; ++a) {
            for (int b = 0; b < kernel; ++b) {
                int row = r + a - padding, column = q + b - padding;
                if (row >= 0 && row < height && column >= 0 && column < width)
                    sum += in[row * width + column] * f[a * kernel + b];
            }
        }
    }
    float scale = weight[o] * rsqrtf(var[o] + 1e-5f);
    float shift = bias[o] - mean[o] * scale;
    y[i] = fmaxf(sum * scale + shift, 0.0f);
}

torch::Tensor conv_bn_relu(torch::Tensor x, torch::Tensor filter, torch::Tensor mean, torch::Tensor var,
                           torch::Tensor weight, torch::Tensor bias, int64_t padding) {
    int height = x.size(2), width = x.size(3), out_channels = filter.size(0), kernel = filter.size(2);
    int out_height = height + 2 * padding - kernel + 1, out_width = width + 2 * padding - kernel + 1;
    auto y = torch::empty({x.size(0), out_channels, out_height, out_width}, x.options());
    int n = y.numel();
    conv_bn_relu_kernel<<<(n + 255) / 256, 256>>>(
        x.data_ptr<float>(), filter.data_ptr<float>(), mean.data_ptr<float>(), var.data_ptr<float>(),
        weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), n, x.size(1), out_channels,
        height, width, kernel, padding, out_height, out_width);
    return y;
}
"""

cpp_source = """
torch::Tensor conv_bn_relu(torch::Tensor x, torch::Tensor filter, torch::Tensor mean, torch::Tensor var,
                           torch::Tensor weight, torch::Tensor bias, int64_t padding);
"""

kernels = load_inline(
    name="mini_conv_bn_relu", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["conv_bn_relu"]
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, padding):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, padding=padding, bias=False)
        self.weight = nn.Parameter(1.0 + 0.3 * torch.randn(out_channels))
        self.bias = nn.Parameter(0.3 + 0.3 * torch.randn(out_channels))
        self.register_buffer("running_mean", 0.3 * torch.randn(out_channels))
        self.register_buffer("running_var", 0.3 + torch.rand(out_channels))

    def forward(self, x):
        return kernels.conv_bn_relu(
            x.contiguous(),
            self.conv.weight,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.conv.padding[0],
        )
