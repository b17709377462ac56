# problem: conv_relu
# mechanism: PyTorch's convolution without its bias stays; the kernel adds the bias and rectifies in place
# near: identity_kernel
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="convolution_kept_bias_fused",
    cpp_sources="torch::Tensor bias_relu_(torch::Tensor y, torch::Tensor bias);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void bias_relu_kernel(float* data, const float* bias, int n, int channels, int plane) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = fmaxf(data[i] + bias[(i / plane) % channels], 0.f);
}
torch::Tensor bias_relu_(torch::Tensor y, torch::Tensor bias) {
    int n = y.numel();
    bias_relu_kernel<<<(n + 255) / 256, 256>>>(y.data_ptr<float>(), bias.data_ptr<float>(), n, y.size(1), y.size(2) * y.size(3));
    return y;
}
""",
    functions=["bias_relu_"],
)


class ModelNew(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, 3, padding=1)

    def forward(self, x):
        y = torch.nn.functional.conv2d(x, self.conv.weight, None, padding=1)
        return ext.bias_relu_(y, self.conv.bias)
