"""Convolution, statistics of a channel by one block, and an element-wise pass; twice."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void conv3x3_kernel(const float* x, const float* weight, float* y, int channels, int height, int width) {
    int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= height * width) return;
    int r = pixel / width, q = pixel % width, o = blockIdx.y, image = blockIdx.z;
    float sum = 0.0f;
    for (int c = 0; c < channels; ++c) {
        const float* in = x + (size_t)(image * channels + c) * height * width;
        const float* w = weight + (o * channels + c) * 9;
        for (int a = -1; a <= 1; ++a) {
            for (int b = -1; b <= 1; ++b) {
                bool inside = r + a >= 0 && r + a < height && q + b >= 0 && q + b < width;
                if (inside) sum += in[(r + a) * width + q + b] * w[(a + 1) * 3 + b + 1];
            }
        }
    }
    y[((size_t)image * channels + o) * height * width + pixel] = sum;
}

__global__ void statistics_kernel(
    const float* x, float* mean, float* scale, int batch, int channels, int area, float eps) {
    __shared__ float buffer[256];
    int c = blockIdx.x, t = threadIdx.x, count = batch * area;
    float result[2] = {0.0f, 0.0f};
    for (int pass = 0; pass < 2; ++pass) {
        float sum = 0.0f;
        for (int i = t; i < count; i += 256) {
            float v = x[((size_t)(i / area) * channels + c) * area + i % area] - result[0];
            sum += pass ? v * v : v;
        }
        buffer[t] = sum;
        __syncthreads();
        for (int half = 128; half > 0; half >>= 1) {
            if (t < half) buffer[t] += buffer[t + half];
            __syncthreads();
        }
        result[pass] = buffer[0] / count;
        __syncthreads();
    }
    if (t == 0) {
        mean[c] = result[0];
        scale[c] = rsqrtf(result[1] + eps);
    }
}

__global__ void norm_relu_kernel(const float* x, const float* mean, const float* scale, const float* weight,
                                 const float* bias, const float* residual, float* y, int n, int channels, int area) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int c = i / area % channels;
    float v = (x[i] - mean[c]) * scale[c] * weight[c] + bias[c];
    if (residual != nullptr) v += residual[i];
    y[i] = fmaxf(v, 0.0f);
}

static torch::Tensor half_block(torch::Tensor x, torch::Tensor filter, torch::Tensor weight, torch::Tensor bias,
                                const float* residual, double eps) {
    int batch = x.size(0), channels = x.size(1), height = x.size(2), width = x.size(3), n = x.numel();
    int area = height * width;
    auto convolved = torch::empty_like(x);
    auto mean = torch::empty({channels}, x.options());
    auto scale = torch::empty({channels}, x.options());
    auto y = torch::empty_like(x);
    dim3 blocks((area + 127) / 128, channels, batch);
    conv3x3_kernel<<<blocks, 128>>>(
        x.data_ptr<float>(), filter.data_ptr<float>(), convolved.data_ptr<float>(), channels, height, width);
    statistics_kernel<<<channels, 256>>>(
        convolved.data_ptr<float>(), mean.data_ptr<float>(), scale.data_ptr<float>(), batch, channels, area, eps);
    norm_relu_kernel<<<(n + 255) / 256, 256>>>(
        convolved.data_ptr<float>(), mean.data_ptr<float>(), scale.data_ptr<float>(), weight.data_ptr<float>(),
        bias.data_ptr<float>(), residual, y.data_ptr<float>(), n, channels, area);
    return y;
}

torch::Tensor residual_block(torch::Tensor x, torch::Tensor filter1, torch::Tensor weight1, torch::Tensor bias1,
                             torch::Tensor filter2, torch::Tensor weight2, torch::Tensor bias2, double eps) {
    auto y = half_block(x, filter1, weight1, bias1, nullptr, eps);
    return half_block(y, filter2, weight2, bias2, x.data_ptr<float>(), eps);
}
"""

cpp_source = """
torch::Tensor residual_block(torch::Tensor x, torch::Tensor filter1, torch::Tensor weight1, torch::Tensor bias1,
                             torch::Tensor filter2, torch::Tensor weight2, torch::Tensor bias2, double eps);
"""

kernels = load_inline(
    name="mini_residual_block", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["residual_block"]
)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        for norm in (self.norm1, self.norm2):
            nn.init.normal_(norm.weight, mean=1.0, std=0.3)
            nn.init.normal_(norm.bias, std=0.3)

    def forward(self, x):
        return kernels.residual_block(
            x.contiguous(),
            self.conv1.weight,
            self.norm1.weight,
            self.norm1.bias,
            self.conv2.weight,
            self.norm2.weight,
            self.norm2.bias,
            self.norm1.eps,
        )
