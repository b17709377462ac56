# problem: row_sum
# mechanism: the kernel leaves partial sums, torch.sum adds them up: the reference's operator, on far less data
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="row_sum_partial",
    cpp_sources="torch::Tensor partial(torch::Tensor x, int64_t chunk);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void partial_kernel(const float* in, float* out, int width, int chunks, int chunk) {
    int row = blockIdx.x, part = threadIdx.x;
    if (part >= chunks) return;
    float sum = 0.f;
    for (int i = part * chunk; i < min(width, (part + 1) * chunk); ++i) sum += in[row * width + i];
    out[row * chunks + part] = sum;
}

torch::Tensor partial(torch::Tensor x, int64_t chunk) {
    int rows = x.size(0), width = x.size(1), chunks = (width + chunk - 1) / chunk;
    auto out = torch::empty({rows, chunks}, x.options());
    partial_kernel<<<rows, 32>>>(x.data_ptr<float>(), out.data_ptr<float>(), width, chunks, (int)chunk);
    return out;
}
""",
    functions=["partial"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.sum(ext.partial(x, 25), dim=1)
