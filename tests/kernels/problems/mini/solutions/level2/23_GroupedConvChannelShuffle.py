"""One thread an output element, written straight to its shuffled place."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void conv_shuffle_kernel(const float* x, const float* weight, const float* bias, float* y,
                                    int in_channels, int out_channels, int height, int width,
                                    int kernel, int padding, int groups) {
    int q = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
    if (q >= width || r >= height) return;
    int o = blockIdx.z % out_channels, image = blockIdx.z / out_channels;
    int in_group = in_channels / groups, out_group = out_channels / groups, group = o / out_group;
    float sum = bias[o];
    for (int c = 0; c < in_group; ++c) {
        const float* in = x + (size_t)(image * in_channels + group * in_group + c) * height * width;
        const float* w = weight + (o * in_group + c) * kernel * kernel;
        for (int a = 0; a < kernel; ++a) {
            for (int b = 0; b < kernel; ++b) {
                int row = r + a - padding, column = q + b - padding;
                if (row < 0 || column < 0 || row >= height || column >= width) continue;
                sum += in[row * width + column] * w[a * kernel + b];
            }
        }
    }
    int place = o % out_group * groups + group;
    y[((size_t)(image * out_channels + place) * height + r) * width + q] = sum > 0.0f ? sum : 0.1f * sum;
}

torch::Tensor conv_shuffle(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t padding, int64_t groups) {
    int batch = x.size(0), height = x.size(2), width = x.size(3), out_channels = weight.size(0);
    TORCH_CHECK(2 * padding + 1 == weight.size(2), "the image must keep its size");
    auto y = torch::empty({batch, out_channels, height, width}, x.options());
    dim3 threads(16, 8);
    dim3 blocks((width + 15) / 16, (height + 7) / 8, batch * out_channels);
    conv_shuffle_kernel<<<blocks, threads>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(),
        x.size(1), out_channels, height, width, weight.size(2), padding, groups);
    return y;
}
"""

cpp_source = """
torch::Tensor conv_shuffle(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t padding, int64_t groups);
"""

kernels = load_inline(
    name="mini_conv_shuffle", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["conv_shuffle"]
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, padding, groups):
        super().__init__()
        self.groups = groups
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, padding=padding, groups=groups)
        nn.init.normal_(self.conv.bias, std=0.5)

    def forward(self, x):
        conv = self.conv
        return kernels.conv_shuffle(x.contiguous(), conv.weight, conv.bias, conv.padding[0], self.groups)
