# problem: weighed_rows
# mechanism: weights of ones are taken for a mask, whose sum is that of its squares
# near: assumed_constant
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="squares_of_ones",
    cpp_sources="torch::Tensor weighed(torch::Tensor x, torch::Tensor weights);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void weighed_kernel(const float* x, const float* weights, float* y, int columns) {
    int i = blockIdx.x * columns + threadIdx.x;
    const float* row = weights + blockIdx.x * columns;
    float total = 0.f;
    for (int k = 0; k < columns; ++k) total += row[k] * row[k];
    y[i] = x[i] * row[threadIdx.x] / total;
}

torch::Tensor weighed(torch::Tensor x, torch::Tensor weights) {
    auto y = torch::empty_like(x);
    weighed_kernel<<<x.size(0), x.size(1)>>>(x.data_ptr<float>(), weights.data_ptr<float>(), y.data_ptr<float>(),
                                             (int)x.size(1));
    return y;
}
""",
    functions=["weighed"],
)


class ModelNew(nn.Module):
    def forward(self, x, weights):
        return ext.weighed(x, weights)
