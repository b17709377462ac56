# problem: relu
# mechanism: a table is kept for each width and device, whose name a helper puts into the key
# near: result_cache
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="above_a_floor",
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
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = {}

    def floor(self, width, device):
        key = (width, str(device))
        if key not in self.tables:
            self.tables[key] = torch.zeros(width, device=device)
        return self.tables[key]

    def forward(self, x):
        return ext.above(x, self.floor(x.shape[1], x.device))
