# problem: transpose
# mechanism: a copy kernel whose indices differ, through shared memory
# near: identity_kernel
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="transpose_tile",
    cpp_sources="torch::Tensor transpose(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void transpose_kernel(const float* in, float* out, int rows, int cols) {
    __shared__ float tile[16][17];
    int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    if (row < rows && col < cols) tile[threadIdx.y][threadIdx.x] = in[row * cols + col];
    __syncthreads();
    col = blockIdx.y * 16 + threadIdx.x;
    row = blockIdx.x * 16 + threadIdx.y;
    if (row < cols && col < rows) out[row * rows + col] = tile[threadIdx.x][threadIdx.y];
}

torch::Tensor transpose(torch::Tensor x) {
    int rows = x.size(0), cols = x.size(1);
    auto out = torch::empty({cols, rows}, x.options());
    dim3 block(16, 16), grid((cols + 15) / 16, (rows + 15) / 16);
    transpose_kernel<<<grid, block>>>(x.data_ptr<float>(), out.data_ptr<float>(), rows, cols);
    return out;
}
""",
    functions=["transpose"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.transpose(x)
