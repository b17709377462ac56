# problem: sum_and_max
# mechanism: std::vector of tensors becomes a tuple
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="sum_and_max",
    cpp_sources="std::vector<torch::Tensor> sum_and_max(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <vector>

__global__ void both_kernel(const float* in, float* sums, float* peaks, int rows, int width) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.f, peak = in[row * width];
    for (int i = 0; i < width; ++i) {
        sum += in[row * width + i];
        peak = fmaxf(peak, in[row * width + i]);
    }
    sums[row] = sum;
    peaks[row] = peak;
}

std::vector<torch::Tensor> sum_and_max(torch::Tensor x) {
    int rows = x.size(0);
    auto sums = torch::empty({rows}, x.options()), peaks = torch::empty({rows}, x.options());
    both_kernel<<<1, 32>>>(x.data_ptr<float>(), sums.data_ptr<float>(), peaks.data_ptr<float>(), rows, x.size(1));
    return {sums, peaks};
}
""",
    functions=["sum_and_max"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        sums, peaks = ext.sum_and_max(x)
        return sums, peaks
