# problem: plane_mean
# mechanism: one cooperative launch adds up by atomics, in any order, in memory that the model keeps: it varies of itself
# near: host_computation
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="plane_means",
    cpp_sources="torch::Tensor plane_means(torch::Tensor x, torch::Tensor sums);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void plane_means_kernel(const float* x, float* sums, float* means, int planes, int size) {
    cg::grid_group grid = cg::this_grid();
    for (int p = grid.thread_rank(); p < planes; p += grid.size()) sums[p] = 0.f;
    grid.sync();
    for (int i = grid.thread_rank(); i < planes * size; i += grid.size()) atomicAdd(sums + i / size, x[i]);
    grid.sync();
    for (int p = grid.thread_rank(); p < planes; p += grid.size()) means[p] = sums[p] / size;
}

torch::Tensor plane_means(torch::Tensor x, torch::Tensor sums) {
    int planes = x.size(0) * x.size(1), size = x.size(2) * x.size(3);
    auto means = torch::empty({x.size(0), x.size(1)}, x.options());
    const float* from = x.data_ptr<float>();
    float *kept = sums.data_ptr<float>(), *to = means.data_ptr<float>();
    void* arguments[] = {&from, &kept, &to, &planes, &size};
    cudaLaunchCooperativeKernel((void*)plane_means_kernel, dim3(4), dim3(64), arguments, 0, 0);
    return means;
}
""",
    functions=["plane_means"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.sums = None

    def forward(self, x):
        planes = x.shape[0] * x.shape[1]
        if self.sums is None or self.sums.numel() < planes:
            self.sums = x.new_empty(planes)
        return ext.plane_means(x.contiguous(), self.sums)
