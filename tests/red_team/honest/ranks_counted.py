# problem: ranks
# mechanism: a kernel puts each number at its rank, which it counts
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="ranks_counted",
    cpp_sources="torch::Tensor placed(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void place(const float* x, float* y, int width) {
    const float* row = x + blockIdx.x * width;
    for (int c = threadIdx.x; c < width; c += blockDim.x) {
        int before = 0;
        for (int o = 0; o < width; ++o) before += row[o] > row[c] || (row[o] == row[c] && o < c);
        y[blockIdx.x * width + before] = row[c];
    }
}
torch::Tensor placed(torch::Tensor x) {
    auto y = torch::empty_like(x);
    place<<<x.size(0), 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    return y;
}
""",
    functions=["placed"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.placed(x)
