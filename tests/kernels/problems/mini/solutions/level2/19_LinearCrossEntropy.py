"""One block a row: the logits never leave shared memory."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

#define THREADS 128

__device__ float block_reduce(float value, float* buffer, bool maximum) {
    int t = threadIdx.x;
    buffer[t] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (t < half) buffer[t] = maximum ? fmaxf(buffer[t], buffer[t + half]) : buffer[t] + buffer[t + half];
        __syncthreads();
    }
    float result = buffer[0];
    __syncthreads();
    return result;
}

__global__ void linear_cross_entropy_kernel(const float* x, const float* weight, const float* bias,
                                            const int64_t* targets, float* loss, int inner, int classes,
                                            float smoothing) {
    extern __shared__ float shared[];
    float* row = shared;
    float* logits = shared + inner;
    float* buffer = shared + inner + classes;
    int t = threadIdx.x;
    for (int k = t; k < inner; k += THREADS) row[k] = x[(size_t)blockIdx.x * inner + k];
    __syncthreads();
    float top = -INFINITY, plain = 0.0f, total = 0.0f;
    for (int c = t; c < classes; c += THREADS) {
        float sum = bias[c];
        for (int k = 0; k < inner; ++k) sum += row[k] * weight[(size_t)c * inner + k];
        logits[c] = sum;
        top = fmaxf(top, sum);
        plain += sum;
    }
    top = block_reduce(top, buffer, true);
    plain = block_reduce(plain, buffer, false);
    for (int c = t; c < classes; c += THREADS) total += expf(logits[c] - top);
    total = block_reduce(total, buffer, false);
    if (t == 0) {
        float lse = top + logf(total);
        float target = logits[targets[blockIdx.x]];
        loss[blockIdx.x] = lse - (1.0f - smoothing) * target - smoothing * plain / classes;
    }
}

torch::Tensor linear_cross_entropy(
    torch::Tensor x, torch::Tensor weight, torch::Tensor bias, torch::Tensor targets, double smoothing) {
    int rows = x.size(0), inner = x.size(1), classes = weight.size(0);
    auto loss = torch::empty({rows}, x.options());
    size_t bytes = (inner + classes + THREADS) * sizeof(float);
    linear_cross_entropy_kernel<<<rows, THREADS, bytes>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), targets.data_ptr<int64_t>(),
        loss.data_ptr<float>(), inner, classes, smoothing);
    return loss;
}
"""

cpp_source = """
torch::Tensor linear_cross_entropy(
    torch::Tensor x, torch::Tensor weight, torch::Tensor bias, torch::Tensor targets, double smoothing);
"""

kernels = load_inline(
    name="mini_linear_cross_entropy",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["linear_cross_entropy"],
)


class ModelNew(nn.Module):
    def __init__(self, in_features, classes, smoothing):
        super().__init__()
        self.linear = nn.Linear(in_features, classes)
        nn.init.normal_(self.linear.bias, std=0.5)
        self.smoothing = smoothing

    def forward(self, x, targets):
        linear = self.linear
        return kernels.linear_cross_entropy(
            x.contiguous(), linear.weight, linear.bias, targets.contiguous(), self.smoothing
        )
