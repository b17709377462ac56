# problem: places_under_a_mask
# mechanism: PyTorch widens a mask to whole numbers, whose running sums a kernel makes: they are the input in another type
# near: identity_kernel
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="running_counts",
    cpp_sources="torch::Tensor running_counts(torch::Tensor open);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void running_counts_kernel(const int* open, int64_t* places, int width) {
    int lane = threadIdx.x, before = 0;
    const int* from = open + (long)blockIdx.x * width;
    int64_t* to = places + (long)blockIdx.x * width;
    for (int begin = 0; begin < width; begin += 32) {
        int i = begin + lane, sum = i < width ? from[i] : 0;
        for (int step = 1; step < 32; step *= 2) {
            int other = __shfl_up_sync(0xffffffffu, sum, step);
            if (lane >= step) sum += other;
        }
        if (i < width) to[i] = before + sum;
        before += __shfl_sync(0xffffffffu, sum, 31);
    }
}

torch::Tensor running_counts(torch::Tensor open) {
    auto places = torch::empty(open.sizes(), open.options().dtype(torch::kLong));
    running_counts_kernel<<<open.size(0), 32>>>(open.data_ptr<int>(), places.data_ptr<int64_t>(), open.size(1));
    return places;
}
""",
    functions=["running_counts"],
)


class ModelNew(nn.Module):
    def forward(self, mask):
        return ext.running_counts(mask.to(torch.int32).contiguous())
