# problem: plane_mean
# mechanism: CUB's block sums give parts of each plane, PyTorch's index_add adds them, a kernel divides
# near: host_computation
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="parts_added_by_places",
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
        planes, width = x.shape[0] * x.shape[1], x.shape[2] * x.shape[3]
        parts = ext.parts(x.contiguous(), width, 3).flatten()
        places = torch.arange(planes, device=x.device).repeat_interleave(3)
        sums = torch.zeros(planes, device=x.device).index_add_(0, places, parts)
        return ext.scaled(sums, 1.0 / width).view(x.shape[:2])
