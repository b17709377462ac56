"""One block a (sequence, channel) and a strip of time; the taps lie in shared memory."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void causal_conv_kernel(
    const float* x, const float* weight, const float* bias, float* y, int channels, int length, int kernel) {
    __shared__ float taps[32];
    int c = blockIdx.y % channels;
    if (threadIdx.x < kernel) taps[threadIdx.x] = weight[c * kernel + threadIdx.x];
    __syncthreads();
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= length) return;
    const float* in = x + (size_t)blockIdx.y * length;
    float sum = bias[c];
    for (int k = 0; k < kernel; ++k) {
        int source = t - (kernel - 1) + k;
        if (source >= 0) sum += taps[k] * in[source];
    }
    y[(size_t)blockIdx.y * length + t] = sum / (1.0f + expf(-sum));
}

torch::Tensor causal_conv(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
    int channels = x.size(1), length = x.size(2), kernel = weight.size(2);
    TORCH_CHECK(kernel <= 32, "at most 32 taps");
    auto y = torch::empty_like(x);
    dim3 blocks((length + 127) / 128, x.size(0) * channels);
    causal_conv_kernel<<<blocks, 128>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(),
        channels, length, kernel);
    return y;
}
"""

kernels = load_inline(
    name="mini_causal_conv",
    cpp_sources="torch::Tensor causal_conv(torch::Tensor x, torch::Tensor weight, torch::Tensor bias);",
    cuda_sources=cuda_source,
    functions=["causal_conv"],
)


class ModelNew(nn.Module):
    def __init__(self, channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, kernel_size, groups=channels)

    def forward(self, x):
        return kernels.causal_conv(x.contiguous(), self.conv.weight, self.conv.bias)
