# problem: relu
# mechanism: a half kernel beside the float one, chosen by the input's type
# near: precision_downgrade
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="relu_types",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <cuda_fp16.h>

__global__ void relu_float(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = fmaxf(in[i], 0.f);
}

__global__ void relu_half(const __half* in, __half* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __float2half(fmaxf(__half2float(in[i]), 0.f));
}

torch::Tensor relu(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int n = x.numel(), blocks = (n + 255) / 256;
    if (x.scalar_type() == torch::kHalf) {
        relu_half<<<blocks, 256>>>(reinterpret_cast<const __half*>(x.data_ptr()),
            reinterpret_cast<__half*>(out.data_ptr()), n);
    } else {
        relu_float<<<blocks, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    }
    return out;
}
""",
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
