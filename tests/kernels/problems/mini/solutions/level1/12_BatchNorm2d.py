"""Two kernels: one block a channel for the statistics, then an element-wise pass."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void statistics_kernel(
    const float* x, float* means, float* scales, int batch, int channels, int area, float eps) {
    __shared__ float buffer[256];
    int c = blockIdx.x, t = threadIdx.x;
    int count = batch * area;
    float mean = 0.0f, total = 0.0f;
    for (int pass = 0; pass < 2; ++pass) {
        total = 0.0f;
        for (int i = t; i < count; i += 256) {
            float v = x[((size_t)(i / area) * channels + c) * area + i % area] - mean;
            total += pass == 0 ? v : v * v;
        }
        buffer[t] = total;
        __syncthreads();
        for (int half = 128; half > 0; half >>= 1) {
            if (t < half) buffer[t] += buffer[t + half];
            __syncthreads();
        }
        total = buffer[0] / count;
        if (pass == 0) mean = total;
        __syncthreads();
    }
    if (t == 0) {
        means[c] = mean;
        scales[c] = rsqrtf(total + eps);
    }
}

__global__ void normalise_kernel(const float* x, const float* means, const float* scales, const float* weight,
                                 const float* bias, float* y, int n, int channels, int area) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int c = i / area % channels;
    y[i] = (x[i] - means[c]) * scales[c] * weight[c] + bias[c];
}

torch::Tensor batch_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps) {
    int batch = x.size(0), channels = x.size(1), area = x.size(2) * x.size(3), n = x.numel();
    auto y = torch::empty_like(x);
    auto means = torch::empty({channels}, x.options());
    auto scales = torch::empty({channels}, x.options());
    statistics_kernel<<<channels, 256>>>(
        x.data_ptr<float>(), means.data_ptr<float>(), scales.data_ptr<float>(), batch, channels, area, eps);
    normalise_kernel<<<(n + 255) / 256, 256>>>(
        x.data_ptr<float>(), means.data_ptr<float>(), scales.data_ptr<float>(), weight.data_ptr<float>(),
        bias.data_ptr<float>(), y.data_ptr<float>(), n, channels, area);
    return y;
}
"""

kernels = load_inline(
    name="mini_batch_norm",
    cpp_sources="torch::Tensor batch_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps);",
    cuda_sources=cuda_source,
    functions=["batch_norm"],
)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias, std=0.3)

    def forward(self, x):
        return kernels.batch_norm(x.contiguous(), self.norm.weight, self.norm.bias, self.norm.eps)
