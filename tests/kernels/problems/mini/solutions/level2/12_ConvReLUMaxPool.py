"""One thread a pooled element: four convolutions and their maximum."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void conv_relu_pool_kernel(const float* x, const float* weight, const float* bias, float* y, int n,
                                      int in_channels, int out_channels, int height, int width, int kernel,
                                      int out_height, int out_width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int q = i % out_width, r = i / out_width % out_height;
    int o = i / (out_width * out_height) % out_channels, image = i / (out_width * out_height * out_channels);
    float best = 0.0f;
    for (int corner = 0; corner < 4; ++corner) {
        int top = 2 * r + corner / 2, left = 2 * q + corner % 2;
        float sum = bias[o];
        for (int c = 0; c < in_channels; ++c) {
            const float* in = x + ((size_t)(image * in_channels + c) * height + top) * width + left;
            const float* w = weight + (o * in_channels + c) * kernel * kernel;
            for (int a = 0; a < kernel; ++a)
                for (int b = 0; b < kernel; ++b) sum += in[a * width + b] * w[a * kernel + b];
        }
        best = fmaxf(best, sum);
    }
    y[i] = best;
}

torch::Tensor conv_relu_pool(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
    int height = x.size(2), width = x.size(3), out_channels = weight.size(0), kernel = weight.size(2);
    int out_height = (height - kernel + 1) / 2, out_width = (width - kernel + 1) / 2;
    auto y = torch::empty({x.size(0), out_channels, out_height, out_width}, x.options());
    int n = y.numel();
    conv_relu_pool_kernel<<<(n + 127) / 128, 128>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), n,
        x.size(1), out_channels, height, width, kernel, out_height, out_width);
    return y;
}
"""

kernels = load_inline(
    name="mini_conv_relu_pool",
    cpp_sources="torch::Tensor conv_relu_pool(torch::Tensor x, torch::Tensor weight, torch::Tensor bias);",
    cuda_sources=cuda_source,
    functions=["conv_relu_pool"],
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        nn.init.normal_(self.conv.bias, std=0.5)

    def forward(self, x):
        return kernels.conv_relu_pool(x.contiguous(), self.conv.weight, self.conv.bias)
