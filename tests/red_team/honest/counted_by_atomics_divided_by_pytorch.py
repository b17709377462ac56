# problem: written_counts
# mechanism: a kernel counts the classes, PyTorch divides the counts
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="counted_by_atomics_divided_by_pytorch",
    cpp_sources="torch::Tensor counts(torch::Tensor classes, int64_t kinds);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void counts_kernel(const int64_t* classes, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(out + classes[i], 1);
}
torch::Tensor counts(torch::Tensor classes, int64_t kinds) {
    auto out = torch::zeros({kinds}, classes.options().dtype(torch::kInt));
    int n = classes.numel();
    counts_kernel<<<(n + 127) / 128, 128>>>(classes.data_ptr<int64_t>(), out.data_ptr<int>(), n);
    return out;
}
""",
    functions=["counts"],
)


class ModelNew(nn.Module):
    def forward(self, classes):
        return ext.counts(classes, 40) / len(classes)
