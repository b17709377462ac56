"""One thread an element."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void gather_kernel(const float* x, const int64_t* index, float* y, int n, int columns, int picks) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[(size_t)(i / picks) * columns + index[i]];
}

torch::Tensor gather(torch::Tensor x, torch::Tensor index) {
    auto y = torch::empty({index.size(0), index.size(1)}, x.options());
    int n = index.numel();
    gather_kernel<<<(n + 511) / 512, 512>>>(
        x.data_ptr<float>(), index.data_ptr<int64_t>(), y.data_ptr<float>(), n, x.size(1), index.size(1));
    return y;
}
"""

kernels = load_inline(
    name="mini_gather",
    cpp_sources="torch::Tensor gather(torch::Tensor x, torch::Tensor index);",
    cuda_sources=cuda_source,
    functions=["gather"],
)


class ModelNew(nn.Module):
    def forward(self, x, index):
        return kernels.gather(x.contiguous(), index.contiguous())
