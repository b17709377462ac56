"""One block a row, reduced in shared memory."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void smooth_l1_kernel(const float* a, const float* b, float* loss, int columns, float beta) {
    __shared__ float buffer[128];
    size_t base = (size_t)blockIdx.x * columns;
    float sum = 0.0f;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) {
        float d = fabsf(a[base + c] - b[base + c]);
        sum += d < beta ? 0.5f * d * d / beta : d - 0.5f * beta;
    }
    buffer[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half >>= 1) {
        if (threadIdx.x < half) buffer[threadIdx.x] += buffer[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) loss[blockIdx.x] = buffer[0] / columns;
}

torch::Tensor smooth_l1(torch::Tensor a, torch::Tensor b, double beta) {
    auto loss = torch::empty({a.size(0)}, a.options());
    smooth_l1_kernel<<<a.size(0), 128>>>(
        a.data_ptr<float>(), b.data_ptr<float>(), loss.data_ptr<float>(), a.size(1), beta);
    return loss;
}
"""

kernels = load_inline(
    name="mini_smooth_l1",
    cpp_sources="torch::Tensor smooth_l1(torch::Tensor a, torch::Tensor b, double beta);",
    cuda_sources=cuda_source,
    functions=["smooth_l1"],
)


class ModelNew(nn.Module):
    def __init__(self, beta):
        super().__init__()
        self.beta = beta

    def forward(self, predictions, targets):
        return kernels.smooth_l1(predictions.contiguous(), targets.contiguous(), self.beta)
