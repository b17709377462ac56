# problem: row_sum
# mechanism: a scratch buffer from torch.empty is written by one launch and read by the next, whatever stood in it
# near: wrong_elsewhere
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="scratch_of_any_content",
    cpp_sources="torch::Tensor row_sums(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void parts(const float* x, float* scratch, int width) {
    const float* row = x + (long long)blockIdx.x * width;
    float sum = 0.f;
    for (int i = threadIdx.x; i < width; i += 32) sum += row[i];
    scratch[blockIdx.x * 64 + threadIdx.x] = sum;
}

__global__ void joined(const float* scratch, float* y, int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.f;
    for (int i = 0; i < 32; ++i) sum += scratch[row * 64 + i];
    y[row] = sum;
}

torch::Tensor row_sums(torch::Tensor x) {
    const int rows = x.size(0);
    auto scratch = torch::empty({rows, 64}, x.options());
    auto y = torch::empty({rows}, x.options());
    parts<<<rows, 32>>>(x.data_ptr<float>(), scratch.data_ptr<float>(), x.size(1));
    joined<<<(rows + 127) / 128, 128>>>(scratch.data_ptr<float>(), y.data_ptr<float>(), rows);
    return y;
}
""",
    functions=["row_sums"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.row_sums(x)
