# problem: row_sum
# mechanism: a kernel leaves sixteen sums a row, PyTorch adds halves of them until three steps later a kernel adds the last two
# near: host_computation work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="few_parts_joined_by_a_tree",
    cpp_sources="torch::Tensor parts(torch::Tensor x, long width, long count); torch::Tensor scaled(torch::Tensor x, double by);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <cub/cub.cuh>

__global__ void parts_kernel(const float* in, float* out, int width, int count) {
    using Sum = cub::BlockReduce<float, 64>;
    __shared__ typename Sum::TempStorage room;
    int each = (width + count - 1) / count, begin = blockIdx.x % count * each, end = min(width, begin + each);
    float mine = 0.f;
    for (int i = begin + threadIdx.x; i < end; i += 64) mine += in[(size_t)(blockIdx.x / count) * width + i];
    float sum = Sum(room).Sum(mine);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

__global__ void scale_kernel(const float* in, float* out, int n, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * by;
}

torch::Tensor parts(torch::Tensor x, long width, long count) {
    auto out = torch::empty({x.numel() / width, count}, x.options());
    parts_kernel<<<out.numel(), 64>>>(x.data_ptr<float>(), out.data_ptr<float>(), (int)width, (int)count);
    return out;
}

torch::Tensor scaled(torch::Tensor x, double by) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    scale_kernel<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), out.data_ptr<float>(), n, (float)by);
    return out;
}
""",
    functions=["parts", "scaled"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        sums = ext.parts(x.contiguous(), x.shape[1], 16)
        while sums.shape[1] > 2:
            sums = torch.add(*sums.chunk(2, dim=1))
        return ext.parts(sums.contiguous(), 2, 1).flatten()
