# problem: running_sum
# mechanism: a kernel adds up within the blocks, PyTorch's small triangle the sums before each block, a kernel adds them
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="offsets_of_blocks_by_a_triangle",
    cpp_sources="torch::Tensor sums_of_blocks(torch::Tensor x, int64_t blocks); torch::Tensor running_sums(torch::Tensor x, torch::Tensor before);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void block_sums(const float* x, float* sums, int columns, int blocks, int width) {
    const int b = threadIdx.x;
    if (b >= blocks) return;
    float sum = 0;
    for (int c = b * width; c < min(columns, (b + 1) * width); ++c) sum += x[blockIdx.x * columns + c];
    sums[blockIdx.x * blocks + b] = sum;
}
__global__ void running(const float* x, const float* before, float* y, int columns, int blocks, int width) {
    const int b = threadIdx.x;
    if (b >= blocks) return;
    float sum = before[blockIdx.x * blocks + b];
    for (int c = b * width; c < min(columns, (b + 1) * width); ++c) { sum += x[blockIdx.x * columns + c]; y[blockIdx.x * columns + c] = sum; }
}
torch::Tensor sums_of_blocks(torch::Tensor x, int64_t blocks) {
    auto sums = torch::empty({x.size(0), blocks}, x.options());
    block_sums<<<x.size(0), 32>>>(x.data_ptr<float>(), sums.data_ptr<float>(), x.size(1), blocks, (x.size(1) + blocks - 1) / blocks);
    return sums;
}
torch::Tensor running_sums(torch::Tensor x, torch::Tensor before) {
    auto y = torch::empty_like(x);
    const int blocks = before.size(1);
    running<<<x.size(0), 32>>>(x.data_ptr<float>(), before.data_ptr<float>(), y.data_ptr<float>(), x.size(1), blocks, (x.size(1) + blocks - 1) / blocks);
    return y;
}
""",
    functions=["sums_of_blocks", "running_sums"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        sums = ext.sums_of_blocks(x, 8)
        before = sums @ torch.ones(8, 8, device=x.device).triu(1)
        return ext.running_sums(x, before)
