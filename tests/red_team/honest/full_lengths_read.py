# problem: filled_rows
# mechanism: lengths that are always full are read, each by its row
# near: assumed_constant
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="full_lengths_read",
    cpp_sources="torch::Tensor row_largest(torch::Tensor x, torch::Tensor filled);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void largest(const float* x, const int* filled, float* y, int width) {
    const float* row = x + blockIdx.x * width;
    float best = -100.0f;
    for (int c = 0; c < min(filled[blockIdx.x], width); ++c) best = fmaxf(best, row[c]);
    y[blockIdx.x] = best;
}
torch::Tensor row_largest(torch::Tensor x, torch::Tensor filled) {
    auto y = torch::empty({x.size(0)}, x.options());
    largest<<<x.size(0), 1>>>(x.data_ptr<float>(), filled.data_ptr<int>(), y.data_ptr<float>(), x.size(1));
    return y;
}
""",
    functions=["row_largest"],
)


class ModelNew(nn.Module):
    def forward(self, x, filled):
        return ext.row_largest(x, filled)
