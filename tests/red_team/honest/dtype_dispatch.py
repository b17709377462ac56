# problem: relu
# mechanism: a half kernel that only half inputs reach, by a branch in Python
# near: precision_downgrade
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="relu_by_dtype",
    cpp_sources="torch::Tensor run_float(torch::Tensor x);\ntorch::Tensor run_half(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__global__ void relu_float(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = fmaxf(in[i], 0.f);
}

__global__ void relu_half(const __half* in, __half* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __float2half(fmaxf(__half2float(in[i]), 0.f));
}

torch::Tensor run_float(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    relu_float<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}

torch::Tensor run_half(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    relu_half<<<(n + 255) / 256, 256>>>(
        (const __half*)x.data_ptr<at::Half>(), (__half*)out.data_ptr<at::Half>(), n);
    return out;
}
""",
    functions=["run_float", "run_half"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        if x.dtype == torch.float16:
            return ext.run_half(x)
        return ext.run_float(x)
