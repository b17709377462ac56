# problem: row_sum
# mechanism: a scratch buffer is kept by shape, type and device, and written anew in each call
# near: kernel_output_unused result_cache stale_output
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="row_sum_out",
    cpp_sources="void row_sum(torch::Tensor x, torch::Tensor out);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void row_sum_kernel(const float* in, float* out, int rows, int width) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.f;
    for (int i = 0; i < width; ++i) sum += in[row * width + i];
    out[row] = sum;
}

void row_sum(torch::Tensor x, torch::Tensor out) {
    int rows = x.size(0), width = x.size(1);
    row_sum_kernel<<<(rows + 63) / 64, 64>>>(x.data_ptr<float>(), out.data_ptr<float>(), rows, width);
}
""",
    functions=["row_sum"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.buffers_by_shape = {}

    def forward(self, x):
        key = (x.shape, x.dtype, x.device)
        if key not in self.buffers_by_shape:
            self.buffers_by_shape[key] = torch.empty(x.shape[0], device=x.device)
        out = self.buffers_by_shape[key]
        ext.row_sum(x, out)
        return out.clone()
