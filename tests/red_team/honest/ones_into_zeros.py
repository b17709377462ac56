# problem: one_hot
# mechanism: the kernel writes a one into each row of zeros, which are nearly all of the answer
# near: identity_kernel
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="ones_into_zeros",
    cpp_sources="void mark(torch::Tensor out, torch::Tensor labels);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void mark_kernel(float* out, const long* labels, int rows, int width) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) out[row * width + labels[row]] = 1.f;
}
void mark(torch::Tensor out, torch::Tensor labels) {
    int rows = out.size(0);
    mark_kernel<<<(rows + 31) / 32, 32>>>(out.data_ptr<float>(), (const long*)labels.data_ptr<int64_t>(), rows, out.size(1));
}
""",
    functions=["mark"],
)


class ModelNew(nn.Module):
    def forward(self, labels):
        out = torch.zeros(labels.shape[0], 50, device=labels.device)
        ext.mark(out, labels)
        return out
