# problem: turned_by_position
# mechanism: positions are looked for in the order that they have, by halves; they never fall within a sequence
# near: assumed_constant
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="positions_in_order",
    cpp_sources="torch::Tensor gained(torch::Tensor x, torch::Tensor positions, torch::Tensor gains);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void gained_kernel(const float* x, const int64_t* positions, const float* gains, float* y, int length) {
    int token = blockIdx.x, size = blockDim.x, k = threadIdx.x;
    // the first token of the sequence with a position that is not below this one
    const int64_t* own = positions + token / length * length;
    int low = 0, high = length - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (own[middle] < own[token % length]) low = middle + 1; else high = middle;
    }
    int64_t place = own[low];
    y[token * size + k] = x[token * size + k] * gains[place * size + k];
}

torch::Tensor gained(torch::Tensor x, torch::Tensor positions, torch::Tensor gains) {
    auto y = torch::empty_like(x);
    gained_kernel<<<positions.numel(), x.size(2)>>>(x.data_ptr<float>(), positions.data_ptr<int64_t>(),
                                                    gains.data_ptr<float>(), y.data_ptr<float>(), (int)x.size(1));
    return y;
}
""",
    functions=["gained"],
)


class ModelNew(nn.Module):
    def __init__(self, places, size):
        super().__init__()
        self.gains = nn.Parameter(torch.randn(places, size))

    def forward(self, x, positions):
        return ext.gained(x, positions, self.gains)
