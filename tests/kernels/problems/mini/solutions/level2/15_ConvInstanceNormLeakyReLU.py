"""Two kernels: convolution, then one block a plane normalises and activates in place."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void conv_kernel(const float* x, const float* weight, float* y, int in_channels, int out_channels,
                            int height, int width, int kernel, int padding, int out_height, int out_width) {
    int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= out_height * out_width) return;
    int o = blockIdx.y % out_channels, image = blockIdx.y / out_channels;
    int top = pixel / out_width - padding, left = pixel % out_width - padding;
    float sum = 0.0f;
    for (int c = 0; c < in_channels; ++c)
        for (int a = 0; a < kernel; ++a)
            for (int b = 0; b < kernel; ++b) {
                int r = top + a, q = left + b;
                if (r >= 0 && r < height && q >= 0 && q < width)
                    sum += x[((size_t)(image * in_channels + c) * height + r) * width + q] *
                           weight[((o * in_channels + c) * kernel + a) * kernel + b];
            }
    y[(size_t)blockIdx.y * out_height * out_width + pixel] = sum;
}

__global__ void norm_kernel(
    float* y, const float* weight, const float* bias, int channels, int area, float eps, float slope) {
    __shared__ float buffer[256];
    float* plane = y + (size_t)blockIdx.x * area;
    int c = blockIdx.x % channels, t = threadIdx.x;
    float statistics[2];
    for (int pass = 0; pass < 2; ++pass) {
        float sum = 0.0f;
        for (int i = t; i < area; i += 256) {
            float v = plane[i];
            sum += pass == 0 ? v : (v - statistics[0]) * (v - statistics[0]);
        }
        buffer[t] = sum;
        __syncthreads();
        for (int half = 128; half > 0; half /= 2) {
            if (t < half) buffer[t] += buffer[t + half];
            __syncthreads();
        }
        statistics[pass] = buffer[0] / area;
        __syncthreads();
    }
    float scale = weight[c] * rsqrtf(statistics[1] + eps);
    for (int i = t; i < area; i += 256) {
        float v = (plane[i] - statistics[0]) * scale + bias[c];
        plane[i] = v > 0.0f ? v : slope * v;
    }
}

torch::Tensor conv_norm(torch::Tensor x, torch::Tensor filter, torch::Tensor weight, torch::Tensor bias,
                        int64_t padding, double eps, double slope) {
    int batch = x.size(0), in_channels = x.size(1), height = x.size(2), width = x.size(3);
    int out_channels = filter.size(0), kernel = filter.size(2);
    int out_height = height + 2 * padding - kernel + 1, out_width = width + 2 * padding - kernel + 1;
    int area = out_height * out_width;
    auto y = torch::empty({batch, out_channels, out_height, out_width}, x.options());
    dim3 blocks((area + 127) / 128, batch * out_channels);
    conv_kernel<<<blocks, 128>>>(x.data_ptr<float>(), filter.data_ptr<float>(), y.data_ptr<float>(), in_channels,
                                 out_channels, height, width, kernel, padding, out_height, out_width);
    norm_kernel<<<batch * out_channels, 256>>>(
        y.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), out_channels, area, eps, slope);
    return y;
}
"""

cpp_source = """
torch::Tensor conv_norm(torch::Tensor x, torch::Tensor filter, torch::Tensor weight, torch::Tensor bias,
                        int64_t padding, double eps, double slope);
"""

kernels = load_inline(
    name="mini_conv_instance_norm", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["conv_norm"]
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, padding, negative_slope):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, padding=padding, bias=False)
        self.norm = nn.InstanceNorm2d(out_channels, affine=True)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias, std=0.3)
        self.negative_slope = negative_slope

    def forward(self, x):
        conv, norm = self.conv, self.norm
        return kernels.conv_norm(
            x.contiguous(), conv.weight, norm.weight, norm.bias, conv.padding[0], norm.eps, self.negative_slope
        )
