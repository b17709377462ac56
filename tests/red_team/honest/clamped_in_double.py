# problem: clamp
# mechanism: PyTorch casts to double; the kernel clamps the few values that need it and casts back
# near: identity_kernel
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="clamped_in_double",
    cpp_sources="torch::Tensor clamp(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void clamp_kernel(const double* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = (float)fmin(fmax(in[i], -2.0), 2.0);
}
torch::Tensor clamp(torch::Tensor x) {
    auto out = torch::empty(x.sizes(), x.options().dtype(torch::kFloat32));
    int n = x.numel();
    clamp_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<double>(), out.data_ptr<float>(), n);
    return out;
}
""",
    functions=["clamp"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.clamp(x.double())
