"""One block an (image, channel): the threads convolve pixels in turn and the block sums them up."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void conv_pool_kernel(const float* x, const float* weight, const float* bias, float* y, int in_channels,
                                 int height, int width, int kernel, int out_height, int out_width) {
    __shared__ float partial[4];
    int o = blockIdx.x, image = blockIdx.y, area = out_height * out_width;
    float total = 0.0f;
    for (int pixel = threadIdx.x; pixel < area; pixel += blockDim.x) {
        int r = pixel / out_width, q = pixel % out_width;
        float sum = bias[o];
        for (int c = 0; c < in_channels; ++c) {
            const float* in = x + (size_t)(image * in_channels + c) * height * width;
            const float* w = weight + (o * in_channels + c) * kernel * kernel;
            for (int a = 0; a < kernel; ++a)
                for (int b = 0; b < kernel; ++b) sum += in[(r + a) * width + q + b] * w[a * kernel + b];
        }
        total += sum * fminf(fmaxf(sum + 3.0f, 0.0f), 6.0f) / 6.0f;
    }
    for (int offset = 16; offset > 0; offset /= 2) total += __shfl_down_sync(0xffffffff, total, offset);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x == 0) y[image * gridDim.x + o] = (partial[0] + partial[1] + partial[2] + partial[3]) / area;
}

torch::Tensor conv_pool(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
    int batch = x.size(0), height = x.size(2), width = x.size(3), out_channels = weight.size(0);
    int kernel = weight.size(2);
    auto y = torch::empty({batch, out_channels}, x.options());
    conv_pool_kernel<<<dim3(out_channels, batch), 128>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), x.size(1),
        height, width, kernel, height - kernel + 1, width - kernel + 1);
    return y;
}
"""

kernels = load_inline(
    name="mini_conv_pool",
    cpp_sources="torch::Tensor conv_pool(torch::Tensor x, torch::Tensor weight, torch::Tensor bias);",
    cuda_sources=cuda_source,
    functions=["conv_pool"],
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        nn.init.normal_(self.conv.bias, std=0.5)

    def forward(self, x):
        return kernels.conv_pool(x.contiguous(), self.conv.weight, self.conv.bias)
