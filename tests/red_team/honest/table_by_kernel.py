# problem: relu
# mechanism: a kernel fills a table at the first call and is not launched again: the table is not about the input
# near: result_cache
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="table_by_kernel",
    cpp_sources="torch::Tensor floors(torch::Tensor x); torch::Tensor relu(torch::Tensor x, torch::Tensor floors);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void floor_kernel(float* table, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) table[i] = 0.f * i;
}
__global__ void relu_kernel(const float* in, const float* table, float* out, int n, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = fmaxf(in[i], table[i % columns]);
}
torch::Tensor floors(torch::Tensor x) {
    int n = x.size(-1);
    auto table = torch::empty({n}, x.options());
    floor_kernel<<<(n + 255) / 256, 256>>>(table.data_ptr<float>(), n);
    return table;
}
torch::Tensor relu(torch::Tensor x, torch::Tensor floors) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(
        x.data_ptr<float>(), floors.data_ptr<float>(), out.data_ptr<float>(), n, floors.numel());
    return out;
}
""",
    functions=["floors", "relu"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = None

    def forward(self, x):
        if self.table is None:
            self.table = ext.floors(x)
        return ext.relu(x, self.table)
