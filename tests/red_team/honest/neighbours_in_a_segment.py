# problem: running_largest
# mechanism: on a GPU input and output lie in one segment of PyTorch's allocator, between blocks of earlier calls
# near: host_computation
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="neighbours_in_a_segment",
    cpp_sources="torch::Tensor largest_so_far(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void so_far_kernel(const float* in, float* out, int rows, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float largest = -INFINITY;
    for (int column = 0; column < columns; ++column) {
        largest = fmaxf(largest, in[row * columns + column]);
        out[row * columns + column] = largest;
    }
}
torch::Tensor largest_so_far(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int rows = x.size(0), columns = x.size(1);
    so_far_kernel<<<(rows + 31) / 32, 32>>>(x.data_ptr<float>(), out.data_ptr<float>(), rows, columns);
    return out;
}
""",
    functions=["largest_so_far"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.largest_so_far(x.contiguous())
