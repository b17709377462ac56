"""One thread a column: neighbouring threads read neighbouring addresses."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <math_constants.h>

__global__ void max_kernel(const float* x, float* y, int rows, int columns) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns) return;
    const float* p = x + (size_t)blockIdx.y * rows * columns + column;
    float best = -CUDART_INF_F;
    for (int r = 0; r < rows; ++r) best = fmaxf(best, p[(size_t)r * columns]);
    y[(size_t)blockIdx.y * columns + column] = best;
}

torch::Tensor max_middle(torch::Tensor x) {
    int batch = x.size(0), rows = x.size(1), columns = x.size(2);
    auto y = torch::empty({batch, columns}, x.options());
    dim3 blocks((columns + 127) / 128, batch);
    max_kernel<<<blocks, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, columns);
    return y;
}
"""

kernels = load_inline(
    name="mini_max_middle",
    cpp_sources="torch::Tensor max_middle(torch::Tensor x);",
    cuda_sources=cuda_source,
    functions=["max_middle"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return kernels.max_middle(x.contiguous())
