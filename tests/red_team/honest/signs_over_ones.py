# problem: sign
# mechanism: a buffer of ones to begin with, half of the answer; the kernel writes the others
# near: identity_kernel
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="signs_over_ones",
    cpp_sources="void sign(torch::Tensor x, torch::Tensor out);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void sign_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (in[i] < 0.f) out[i] = -1.f;
    if (in[i] == 0.f) out[i] = 0.f;
}
void sign(torch::Tensor x, torch::Tensor out) {
    int n = x.numel();
    sign_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
}
""",
    functions=["sign"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.ones_like(x)
        ext.sign(x, out)
        return out
