# problem: written_bag
# mechanism: PyTorch finds the rows and adds the bias; weights and sum are one kernel
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="rows_found_by_pytorch_and_weighed",
    cpp_sources="torch::Tensor weighed(torch::Tensor rows, torch::Tensor shares);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void weighed_kernel(const float* rows, const float* shares, float* out, int count, int width) {
    float sum = 0.f;
    for (int k = 0; k < count; ++k)
        sum += shares[blockIdx.x * count + k] * rows[(blockIdx.x * count + k) * width + threadIdx.x];
    out[blockIdx.x * width + threadIdx.x] = sum;
}
torch::Tensor weighed(torch::Tensor rows, torch::Tensor shares) {
    int n = rows.size(0), count = rows.size(1), width = rows.size(2);
    auto out = torch::empty({n, width}, rows.options());
    weighed_kernel<<<n, width>>>(rows.data_ptr<float>(), shares.data_ptr<float>(), out.data_ptr<float>(), count, width);
    return out;
}
""",
    functions=["weighed"],
)


class ModelNew(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.table = nn.Parameter(torch.randn(rows, width))
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, places, shares):
        return ext.weighed(nn.functional.embedding(places, self.table), shares) + self.bias
