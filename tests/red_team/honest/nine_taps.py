# problem: blur
# mechanism: nine coefficients are read and normalised on the host, and passed to the kernel by value
# near: host_computation
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="blur_by_value",
    cpp_sources="torch::Tensor blur(torch::Tensor x, torch::Tensor taps);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

struct Taps { float at[9]; };

__global__ void blur_kernel(const float* x, float* y, Taps taps, int height, int width, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int column = i % width, row = i / width % height;
    float sum = 0.f;
    for (int v = 0; v < 3; ++v)
        for (int u = 0; u < 3; ++u) {
            int r = row + v - 1, c = column + u - 1;
            if (r >= 0 && r < height && c >= 0 && c < width)
                sum += taps.at[v * 3 + u] * x[i + (v - 1) * width + u - 1];
        }
    y[i] = sum;
}

torch::Tensor blur(torch::Tensor x, torch::Tensor taps) {
    auto on_host = taps.cpu();
    const float* p = on_host.data_ptr<float>();
    float total = 0.f;
    for (int i = 0; i < 9; ++i) total += p[i];
    Taps filter;
    for (int i = 0; i < 9; ++i) filter.at[i] = p[i] / total;
    auto y = torch::empty_like(x);
    int n = x.numel();
    blur_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), filter, x.size(2), x.size(3), n);
    return y;
}
""",
    functions=["blur"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("taps", torch.tensor([[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]))

    def forward(self, x):
        return ext.blur(x, self.taps)
