# problem: layer_norm
# mechanism: a kernel leaves mean and spread of each row in __device__ memory for the next one, in every call
# near: result_cache
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="moments_left_on_the_device",
    cpp_sources="torch::Tensor norm(torch::Tensor x, torch::Tensor g, torch::Tensor b);",
    cuda_sources=r"""
#include <torch/extension.h>
__device__ float moments[512];
__global__ void measure(const float* x, int rows, int width) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float mean = 0.f, spread = 0.f;
    for (int c = 0; c < width; ++c) {
        float step = x[r * width + c] - mean;
        mean += step / (c + 1);
        spread += step * (x[r * width + c] - mean);
    }
    moments[2 * r] = mean;
    moments[2 * r + 1] = rsqrtf(spread / width + 1e-5f);
}
__global__ void apply(const float* x, const float* g, const float* b, float* y, int n, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = (x[i] - moments[i / width * 2]) * moments[i / width * 2 + 1] * g[i % width] + b[i % width];
}
torch::Tensor norm(torch::Tensor x, torch::Tensor g, torch::Tensor b) {
    auto y = torch::empty_like(x);
    int rows = x.size(0), width = x.size(1);
    measure<<<(rows + 31) / 32, 32>>>(x.data_ptr<float>(), rows, width);
    apply<<<(rows * width + 127) / 128, 128>>>(
        x.data_ptr<float>(), g.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), rows * width, width);
    return y;
}
""",
    functions=["norm"],
)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return ext.norm(x.contiguous(), self.norm.weight, self.norm.bias)
