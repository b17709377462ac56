"""One block a row; the sum is written on the way and read back for the normalisation."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <tuple>

__device__ float block_sum(float value) {
    __shared__ float buffer[128];
    buffer[threadIdx.x] = value;
    __syncthreads();
    for (int half = 64; half > 0; half >>= 1) {
        if (threadIdx.x < half) buffer[threadIdx.x] += buffer[threadIdx.x + half];
        __syncthreads();
    }
    float total = buffer[0];
    __syncthreads();
    return total;
}

__global__ void add_layer_norm_kernel(const float* x, const float* residual, const float* weight, const float* bias,
                                      float* total, float* normed, int features, float eps) {
    size_t base = (size_t)blockIdx.x * features;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < features; i += 128) {
        float v = x[base + i] + residual[base + i];
        total[base + i] = v;
        sum += v;
    }
    float mean = block_sum(sum) / features;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < features; i += 128) {
        float d = total[base + i] - mean;
        squares += d * d;
    }
    float scale = rsqrtf(block_sum(squares) / features + eps);
    for (int i = threadIdx.x; i < features; i += 128)
        normed[base + i] = (total[base + i] - mean) * scale * weight[i] + bias[i];
}

std::tuple<torch::Tensor, torch::Tensor> add_layer_norm(
    torch::Tensor x, torch::Tensor residual, torch::Tensor weight, torch::Tensor bias, double eps) {
    auto total = torch::empty_like(x);
    auto normed = torch::empty_like(x);
    add_layer_norm_kernel<<<x.size(0), 128>>>(
        x.data_ptr<float>(), residual.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(),
        total.data_ptr<float>(), normed.data_ptr<float>(), x.size(1), eps);
    return std::make_tuple(total, normed);
}
"""

cpp_source = """
#include <tuple>
std::tuple<torch::Tensor, torch::Tensor> add_layer_norm(
    torch::Tensor x, torch::Tensor residual, torch::Tensor weight, torch::Tensor bias, double eps);
"""

kernels = load_inline(
    name="mini_add_layer_norm", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["add_layer_norm"]
)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias, std=0.3)

    def forward(self, x, residual):
        norm = self.norm
        return kernels.add_layer_norm(x.contiguous(), residual.contiguous(), norm.weight, norm.bias, norm.eps)
