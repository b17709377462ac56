# problem: sum_and_max
# mechanism: both results are views of one buffer
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="sum_and_max_into",
    cpp_sources="void both(torch::Tensor x, torch::Tensor out);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void both_kernel(const float* in, float* out, int rows, int width) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.f, peak = in[row * width];
    for (int i = 0; i < width; ++i) {
        sum += in[row * width + i];
        peak = fmaxf(peak, in[row * width + i]);
    }
    out[row] = sum;
    out[rows + row] = peak;
}

void both(torch::Tensor x, torch::Tensor out) {
    both_kernel<<<1, 32>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.size(0), x.size(1));
}
""",
    functions=["both"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(2, x.shape[0], dtype=x.dtype, device=x.device)
        ext.both(x, out)
        return out[0], out[1]
