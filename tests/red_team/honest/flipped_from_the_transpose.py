# problem: flip
# mechanism: PyTorch transposes, the kernel flips and transposes back: the same values all the way
# near: identity_kernel
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="flipped_from_the_transpose",
    cpp_sources="torch::Tensor flip(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void flip_kernel(const float* in, float* out, int rows, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * columns) out[i] = in[(columns - 1 - i % columns) * rows + i / columns];
}
torch::Tensor flip(torch::Tensor x) {
    int columns = x.size(0), rows = x.size(1), n = rows * columns;
    auto out = torch::empty({rows, columns}, x.options());
    flip_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), rows, columns);
    return out;
}
""",
    functions=["flip"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.flip(x.t().contiguous())
