# problem: softmax
# mechanism: pointers and sizes inside a struct, rows through a table of addresses; the kernel computes
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="pointers_in_a_struct",
    cpp_sources="torch::Tensor softmax(torch::Tensor table, torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
struct Work { const float* const* rows; float* out; int count, width; };
__global__ void softmax_kernel(Work w) {
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= w.count) return;
    const float* row = w.rows[k];
    float top = row[0], sum = 0.f;
    for (int i = 1; i < w.width; ++i) top = fmaxf(top, row[i]);
    for (int i = 0; i < w.width; ++i) sum += expf(row[i] - top);
    for (int i = 0; i < w.width; ++i) w.out[k * w.width + i] = expf(row[i] - top) / sum;
}
torch::Tensor softmax(torch::Tensor table, torch::Tensor x) {
    auto out = torch::empty_like(x);
    Work w{(const float* const*)table.data_ptr<int64_t>(), out.data_ptr<float>(), (int)x.size(0), (int)x.size(1)};
    softmax_kernel<<<1, 32>>>(w);
    return out;
}
""",
    functions=["softmax"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        step = x.shape[1] * x.element_size()
        table = x.data_ptr() + step * torch.arange(x.shape[0], device=x.device)
        return ext.softmax(table, x)
