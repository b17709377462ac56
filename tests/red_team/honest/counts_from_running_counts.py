# problem: counted_kinds
# mechanism: one kernel counts all kinds up to each, and the next subtracts the neighbours: the sums are a kernel's
# near: identity_kernel host_computation
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="counts_by_steps",
    cpp_sources="torch::Tensor counts(torch::Tensor kinds, int64_t n);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void up_to_kernel(const int64_t* kinds, int* sums, int m, int n) {
    extern __shared__ int part[];
    int mine = 0;
    for (int i = threadIdx.x; i < m; i += blockDim.x) mine += kinds[i] < (int64_t)blockIdx.x;
    part[threadIdx.x] = mine;
    __syncthreads();
    for (int half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

__global__ void between_kernel(const int* sums, int64_t* counts, int n) {
    int i = threadIdx.x;
    if (i < n) counts[i] = sums[i + 1] - sums[i];
}

torch::Tensor counts(torch::Tensor kinds, int64_t n) {
    auto sums = torch::empty({n + 1}, kinds.options().dtype(torch::kInt));
    auto out = torch::empty({n}, kinds.options());
    up_to_kernel<<<n + 1, 64, 64 * sizeof(int)>>>(kinds.data_ptr<int64_t>(), sums.data_ptr<int>(), kinds.numel(), n);
    between_kernel<<<1, 64>>>(sums.data_ptr<int>(), out.data_ptr<int64_t>(), n);
    return out;
}
""",
    functions=["counts"],
)


class ModelNew(nn.Module):
    def forward(self, kinds):
        return ext.counts(kinds.contiguous(), 48)
