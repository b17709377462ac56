"""One thread a position; the first of equal values wins."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void argmax_kernel(const float* x, int64_t* y, int batch, int channels, int positions) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= batch * positions) return;
    const float* p = x + (size_t)(i / positions) * channels * positions + i % positions;
    int best = 0;
    for (int c = 1; c < channels; ++c) {
        if (p[(size_t)c * positions] > p[(size_t)best * positions]) best = c;
    }
    y[i] = best;
}

torch::Tensor argmax(torch::Tensor x) {
    int batch = x.size(0), channels = x.size(1), positions = x.size(2);
    auto y = torch::empty({batch, positions}, x.options().dtype(torch::kInt64));
    int blocks = (batch * positions + 127) / 128;
    argmax_kernel<<<blocks, 128>>>(x.data_ptr<float>(), y.data_ptr<int64_t>(), batch, channels, positions);
    return y;
}
"""

kernels = load_inline(
    name="mini_argmax",
    cpp_sources="torch::Tensor argmax(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["argmax"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return kernels.argmax(x.contiguous())
