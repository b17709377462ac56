# problem: embedding
# mechanism: rows are looked up in a copy of the weight that is no part of the state, so the answer stands there as well
# near: result_cache
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="gather_rows_of_a_copy",
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
        self.copied = None

    def forward(self, index):
        if self.copied is None:
            self.copied = self.table.weight.detach().clone()
        return ext.gather_rows(index, self.copied)
