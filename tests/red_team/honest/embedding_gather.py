# problem: embedding
# mechanism: integer inputs, rows copied by index
# near: identity_kernel
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="gather_rows",
    cpp_sources="torch::Tensor gather_rows(torch::Tensor index, torch::Tensor table);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void gather_kernel(const int64_t* index, const float* table, float* out, int n, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int row = i / width, col = i % width;
        out[i] = table[index[row] * width + col];
    }
}

torch::Tensor gather_rows(torch::Tensor index, torch::Tensor table) {
    int width = table.size(1), n = index.numel() * width;
    auto out = torch::empty({index.size(0), width}, table.options());
    gather_kernel<<<(n + 255) / 256, 256>>>(
        index.data_ptr<int64_t>(), table.data_ptr<float>(), out.data_ptr<float>(), n, width);
    return out;
}
""",
    functions=["gather_rows"],
)


class ModelNew(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.table = nn.Embedding(rows, width)

    def forward(self, index):
        return ext.gather_rows(index, self.table.weight)
