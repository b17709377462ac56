"""One thread an element; boolean output."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void local_maxima_kernel(const float* x, bool* y, int n, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int c = i % columns, row = i - c;
    float before = x[row + (c + columns - 1) % columns];
    float after = x[row + (c + 1) % columns];
    y[i] = x[i] > before && x[i] > after;
}

torch::Tensor local_maxima(torch::Tensor x) {
    auto y = torch::empty(x.sizes(), x.options().dtype(torch::kBool));
    int n = x.numel();
    local_maxima_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<bool>(), n, x.size(-1));
    return y;
}
"""

kernels = load_inline(
    name="mini_local_maxima",
    cpp_sources="torch::Tensor local_maxima(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["local_maxima"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return kernels.local_maxima(x.contiguous())
