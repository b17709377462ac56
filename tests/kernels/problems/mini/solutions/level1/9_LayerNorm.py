"""One block a row: two passes, each reduced in shared memory."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

#define THREADS 128

__device__ float block_sum(float value, float* buffer) {
    buffer[threadIdx.x] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) buffer[threadIdx.x] += buffer[threadIdx.x + half];
        __syncthreads();
    }
    float total = buffer[0];
    __syncthreads();
    return total;
}

__global__ void layer_norm_kernel(
    const float* x, const float* weight, const float* bias, float* y, int features, float eps) {
    __shared__ float buffer[THREADS];
    const float* in = x + (size_t)blockIdx.x * features;
    float* out = y + (size_t)blockIdx.x * features;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < features; i += THREADS) sum += in[i];
    float mean = block_sum(sum, buffer) / features;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < features; i += THREADS) squares += (in[i] - mean) * (in[i] - mean);
    float scale = rsqrtf(block_sum(squares, buffer) / features + eps);
    for (int i = threadIdx.x; i < features; i += THREADS) out[i] = (in[i] - mean) * scale * weight[i] + bias[i];
}

torch::Tensor layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps) {
    auto y = torch::empty_like(x);
    int features = x.size(-1);
    int rows = x.numel() / features;
    layer_norm_kernel<<<rows, THREADS>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), features, eps);
    return y;
}
"""

kernels = load_inline(
    name="mini_layer_norm",
    cpp_sources="torch::Tensor layer_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double eps);",
    cuda_sources=cuda_source,
    functions=["layer_norm"],
)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias, std=0.3)

    def forward(self, x):
        return kernels.layer_norm(x.contiguous(), self.norm.weight, self.norm.bias, self.norm.eps)
