# problem: row_sum
# mechanism: one warp a row, __shfl_down_sync
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="row_sum_warp",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void row_sum_kernel(const float* in, float* out, int rows, int width) {
    int row = blockIdx.x * blockDim.y + threadIdx.y;
    float sum = 0.f;
    if (row < rows)
        for (int i = threadIdx.x; i < width; i += 32) sum += in[row * width + i];
    for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (row < rows && threadIdx.x == 0) out[row] = sum;
}

torch::Tensor row_sum(torch::Tensor x) {
    int rows = x.size(0), width = x.size(1);
    auto out = torch::empty({rows}, x.options());
    row_sum_kernel<<<(rows + 3) / 4, dim3(32, 4)>>>(x.data_ptr<float>(), out.data_ptr<float>(), rows, width);
    return out;
}
""",
    functions=["row_sum"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.row_sum(x)
