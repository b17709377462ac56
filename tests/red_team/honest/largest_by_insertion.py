# problem: largest_four
# mechanism: each thread keeps the four largest of its row in registers
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void four_kernel(const float* x, float* y, int w, int h) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    float best[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    for (int c = 0; c < w; ++c) {
        float v = x[r * w + c];
        for (int k = 0; k < 4; ++k)
            if (v > best[k]) { float t = best[k]; best[k] = v; v = t; }
    }
    for (int k = 0; k < 4; ++k) y[r * 4 + k] = best[k];
}
torch::Tensor four(torch::Tensor x) {
    auto y = torch::empty({x.size(0), 4}, x.options());
    four_kernel<<<1, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1), x.size(0));
    return y;
}
"""
ext = load_inline(
    name="largest_by_insertion",
    cpp_sources="torch::Tensor four(torch::Tensor x);",
    cuda_sources=SOURCE,
    functions=["four"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.four(x.contiguous())
