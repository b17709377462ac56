# problem: scaled_mean_clamp
# mechanism: PyTorch takes the mean, and a kernel multiplies it instead of all elements, and clamps, which changes nothing
# near: identity_kernel
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="scale_and_clamp",
    cpp_sources="torch::Tensor scale_clamp(torch::Tensor x, double factor, double low, double high);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void scale_clamp_kernel(const float* in, float* out, float factor, float low, float high, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = fminf(fmaxf(in[i] * factor, low), high);
}

torch::Tensor scale_clamp(torch::Tensor x, double factor, double low, double high) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    scale_clamp_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), factor, low, high, n);
    return out;
}
""",
    functions=["scale_clamp"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.scale_clamp(x.mean(dim=1), 0.5, -20.0, 20.0)
