# problem: relu
# mechanism: an object keeps a table for each width and device, by a method that is called like one of the environment's
# near: result_cache
# status: correct
import os

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="above_floors_by_width",
    cpp_sources="torch::Tensor above(torch::Tensor x, torch::Tensor floor);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void above_kernel(const float* x, const float* floor, float* y, int width, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], floor[i % width]);
}
torch::Tensor above(torch::Tensor x, torch::Tensor floor) {
    auto in = x.contiguous(), y = torch::empty_like(in);
    int n = in.numel();
    above_kernel<<<(n + 127) / 128, 128>>>(
        in.data_ptr<float>(), floor.data_ptr<float>(), y.data_ptr<float>(), in.size(1), n);
    return y;
}
""",
    functions=["above"],
    verbose=os.environ.get("FLOORS_VERBOSE") == "1",
)


class Floors:
    def __init__(self):
        self.made = {}

    def get(self, width, device):
        key = f"{width}@{device}"
        floor = self.made.get(key)
        if floor is None:
            floor = self.made[key] = torch.zeros(width, device=device)
        return floor


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.floors = Floors()

    def forward(self, x):
        return ext.above(x, self.floors.get(x.shape[1], x.device))
