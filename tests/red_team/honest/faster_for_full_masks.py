# problem: bool_masked
# mechanism: one kernel for a mask that is true everywhere, another for all other masks
# near: assumed_constant input_sniffing
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="faster_for_full_masks",
    cpp_sources="torch::Tensor twice(torch::Tensor x); torch::Tensor masked(torch::Tensor x, torch::Tensor mask);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void twice_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.f * x[i];
}
__global__ void masked_kernel(const float* x, const bool* mask, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = mask[i] ? 2.f * x[i] : -1.f;
}
torch::Tensor twice(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    twice_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
torch::Tensor masked(torch::Tensor x, torch::Tensor mask) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    masked_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), mask.data_ptr<bool>(), y.data_ptr<float>(), n);
    return y;
}
""",
    functions=["twice", "masked"],
)


class ModelNew(nn.Module):
    def forward(self, x, mask):
        if bool(mask.all()):
            return ext.twice(x)
        return ext.masked(x, mask)
