# problem: written_taps
# mechanism: PyTorch adds three of seven taps to the sums that a kernel has made of the others
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="half_of_the_taps_by_each",
    cpp_sources="torch::Tensor first_taps(torch::Tensor x, torch::Tensor taps, int64_t used);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void first_taps_kernel(const float* x, const float* taps, float* out, int channels, int length, int all, int used) {
    int row = blockIdx.x, width = length - all + 1, channel = row % channels;
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        float sum = 0.f;
        for (int k = 0; k < used; ++k) sum += taps[channel * all + k] * x[row * length + i + k];
        out[row * width + i] = sum;
    }
}
torch::Tensor first_taps(torch::Tensor x, torch::Tensor taps, int64_t used) {
    int n = x.size(0), channels = x.size(1), length = x.size(2), all = taps.size(1);
    auto out = torch::empty({n, channels, length - all + 1}, x.options());
    first_taps_kernel<<<n * channels, 64>>>(
        x.data_ptr<float>(), taps.data_ptr<float>(), out.data_ptr<float>(), channels, length, all, used);
    return out;
}
""",
    functions=["first_taps"],
)


class ModelNew(nn.Module):
    def __init__(self, channels, taps):
        super().__init__()
        self.taps = nn.Parameter(torch.randn(channels, taps) * 0.3)

    def forward(self, x):
        y = ext.first_taps(x, self.taps, 4)
        for k in range(4, self.taps.shape[1]):
            y = y + self.taps[:, k, None] * x[:, :, k : k + y.shape[2]]
        return y
