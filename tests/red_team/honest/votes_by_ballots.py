# problem: row_vote
# mechanism: warps gather the signs of 32 numbers in a word, a second launch counts the bits of each row
# near: host_computation
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="votes_by_ballots",
    cpp_sources="torch::Tensor votes(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void ballot_kernel(const float* x, unsigned* words, int w, int per_row) {
    const int row = blockIdx.y, j = blockIdx.x * 32 + threadIdx.x;
    const unsigned word = __ballot_sync(0xffffffffu, j < w && x[row * w + j] > 0.f);
    if (threadIdx.x == 0) words[row * per_row + blockIdx.x] = word;
}
__global__ void count_kernel(const unsigned* words, float* y, int w, int per_row, int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    int positive = 0;
    for (int b = 0; b < per_row; ++b) positive += __popc(words[row * per_row + b]);
    y[row] = 2 * positive > w ? 1.f : 2 * positive < w ? -1.f : 0.f;
}
torch::Tensor votes(torch::Tensor x) {
    const int rows = x.size(0), w = x.size(1), per_row = (w + 31) / 32;
    auto words = torch::empty({rows, per_row}, x.options().dtype(torch::kInt32));
    auto y = torch::empty({rows}, x.options());
    ballot_kernel<<<dim3(per_row, rows), 32>>>(x.data_ptr<float>(), (unsigned*)words.data_ptr<int>(), w, per_row);
    count_kernel<<<(rows + 63) / 64, 64>>>((const unsigned*)words.data_ptr<int>(), y.data_ptr<float>(), w, per_row, rows);
    return y;
}
""",
    functions=["votes"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.votes(x.contiguous())
