# problem: softmax
# mechanism: maximum and sum stay in PyTorch, exponent and division are one kernel
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="exp_shift",
    cpp_sources="torch::Tensor exp_shift(torch::Tensor x, torch::Tensor peak);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void exp_shift_kernel(const float* in, const float* peak, float* out, int n, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = expf(in[i] - peak[i / width]);
}

torch::Tensor exp_shift(torch::Tensor x, torch::Tensor peak) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    exp_shift_kernel<<<(n + 255) / 256, 256>>>(
        x.data_ptr<float>(), peak.data_ptr<float>(), out.data_ptr<float>(), n, x.size(1));
    return out;
}
""",
    functions=["exp_shift"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        shifted = ext.exp_shift(x, x.amax(dim=1).contiguous())
        return shifted / shifted.sum(dim=1, keepdim=True)
