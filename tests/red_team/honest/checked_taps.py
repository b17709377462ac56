# problem: blur
# mechanism: the coefficients' number is checked, then std::accumulate and a loop read them on the host
# near: host_computation
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="blur_checked",
    cpp_sources="torch::Tensor blur(torch::Tensor x, torch::Tensor taps);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <numeric>
#include <vector>

constexpr int kSide = 3;
constexpr int kTaps = kSide * kSide;
__constant__ float c_taps[kTaps];

__global__ void blur_kernel(const float* x, float* y, int height, int width, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int column = i % width, row = i / width % height;
    float sum = 0.f;
    for (int t = 0; t < kTaps; ++t) {
        int r = row + t / kSide - 1, c = column + t % kSide - 1;
        if (r >= 0 && r < height && c >= 0 && c < width) sum += c_taps[t] * x[i + (t / kSide - 1) * width + t % kSide - 1];
    }
    y[i] = sum;
}

torch::Tensor blur(torch::Tensor x, torch::Tensor taps) {
    TORCH_CHECK(taps.numel() == kTaps, "nine taps");
    auto host = taps.to(torch::kCPU);
    auto view = host.accessor<float, 2>();
    std::vector<float> values;
    for (int v = 0; v < kSide; ++v)
        for (int u = 0; u < kSide; ++u) values.push_back(view[v][u]);
    const float total = std::accumulate(values.begin(), values.end(), 0.f);
    for (float& value : values) value /= total;
    cudaMemcpyToSymbol(c_taps, values.data(), sizeof(float) * kTaps);
    auto y = torch::empty_like(x);
    int n = x.numel();
    blur_kernel<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(2), x.size(3), n);
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
