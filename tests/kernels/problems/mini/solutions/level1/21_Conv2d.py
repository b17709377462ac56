"""The filter of one output channel in dynamic shared memory; the grid is (pixels, channel, image)."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void conv2d_kernel(const float* x, const float* weight, const float* bias, float* y,
                              int in_channels, int height, int width, int out_height, int out_width,
                              int kernel, int padding) {
    extern __shared__ float filter[];
    int o = blockIdx.y, n = blockIdx.z, taps = in_channels * kernel * kernel;
    for (int i = threadIdx.x; i < taps; i += blockDim.x) filter[i] = weight[o * taps + i];
    __syncthreads();
    int pixel = blockIdx.x * blockDim.x + threadIdx.x;
    if (pixel >= out_height * out_width) return;
    int top = pixel / out_width - padding, left = pixel % out_width - padding;
    float sum = bias[o];
    for (int c = 0; c < in_channels; ++c) {
        const float* in = x + (size_t)(n * in_channels + c) * height * width;
        for (int i = 0; i < kernel; ++i) {
            int r = top + i;
            if (r < 0 || r >= height) continue;
            for (int j = 0; j < kernel; ++j) {
                int q = left + j;
                if (q >= 0 && q < width) sum += in[r * width + q] * filter[(c * kernel + i) * kernel + j];
            }
        }
    }
    y[((size_t)n * gridDim.y + o) * out_height * out_width + pixel] = sum;
}

torch::Tensor conv2d(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t padding) {
    int batch = x.size(0), in_channels = x.size(1), height = x.size(2), width = x.size(3);
    int out_channels = weight.size(0), kernel = weight.size(2);
    int out_height = height + 2 * padding - kernel + 1, out_width = width + 2 * padding - kernel + 1;
    auto y = torch::empty({batch, out_channels, out_height, out_width}, x.options());
    dim3 blocks((out_height * out_width + 127) / 128, out_channels, batch);
    size_t bytes = in_channels * kernel * kernel * sizeof(float);
    conv2d_kernel<<<blocks, 128, bytes>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(),
        in_channels, height, width, out_height, out_width, kernel, padding);
    return y;
}
"""

kernels = load_inline(
    name="mini_conv2d",
    cpp_sources="torch::Tensor conv2d(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t padding);",
    cuda_sources=cuda_source,
    functions=["conv2d"],
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, padding):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, padding=padding)
        nn.init.normal_(self.conv.bias, std=0.5)

    def forward(self, x):
        return kernels.conv2d(x.contiguous(), self.conv.weight, self.conv.bias, self.conv.padding[0])
