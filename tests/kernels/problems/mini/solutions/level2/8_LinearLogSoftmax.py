"""One block a row: logits in shared memory by warp dot products, then log-softmax by the first warp's statistics."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void linear_log_softmax_kernel(const float* x, const float* weight, const float* bias, float* y,
                                          int inner, int classes, float temperature) {
    extern __shared__ float logits[];
    __shared__ float shift;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const float* in = x + (size_t)blockIdx.x * inner;
    for (int c = warp; c < classes; c += warps) {
        float sum = 0.0f;
        for (int k = lane; k < inner; k += 32) sum += in[k] * weight[(size_t)c * inner + k];
        for (int m = 16; m > 0; m /= 2) sum += __shfl_down_sync(0xffffffff, sum, m);
        if (lane == 0) logits[c] = (sum + bias[c]) / temperature;
    }
    __syncthreads();
    if (warp == 0) {
        float top = -INFINITY, total = 0.0f;
        for (int c = lane; c < classes; c += 32) top = fmaxf(top, logits[c]);
        for (int m = 16; m > 0; m /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffff, top, m));
        for (int c = lane; c < classes; c += 32) total += expf(logits[c] - top);
        for (int m = 16; m > 0; m /= 2) total += __shfl_xor_sync(0xffffffff, total, m);
        if (lane == 0) shift = top + logf(total);
    }
    __syncthreads();
    for (int c = threadIdx.x; c < classes; c += blockDim.x) y[(size_t)blockIdx.x * classes + c] = logits[c] - shift;
}

torch::Tensor linear_log_softmax(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double temperature) {
    int rows = x.size(0), inner = x.size(1), classes = weight.size(0);
    auto y = torch::empty({rows, classes}, x.options());
    linear_log_softmax_kernel<<<rows, 256, classes * sizeof(float)>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(),
        inner, classes, (float)temperature);
    return y;
}
"""

cpp_source = """
torch::Tensor linear_log_softmax(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, double temperature);
"""

kernels = load_inline(
    name="mini_linear_log_softmax", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["linear_log_softmax"]
)


class ModelNew(nn.Module):
    def __init__(self, in_features, classes):
        super().__init__()
        self.linear = nn.Linear(in_features, classes)
        nn.init.normal_(self.linear.bias, std=0.5)

    def forward(self, x, temperature):
        return kernels.linear_log_softmax(x.contiguous(), self.linear.weight, self.linear.bias, temperature)
