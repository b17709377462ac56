# problem: half_scale
# mechanism: half arithmetic, because the problem is in half
# near: precision_downgrade
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="scale_half",
    cpp_sources="torch::Tensor scale(torch::Tensor x, double factor);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <cuda_fp16.h>

__global__ void scale_kernel(const __half* in, __half* out, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __float2half(__half2float(in[i]) * factor);
}

torch::Tensor scale(torch::Tensor x, double factor) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    scale_kernel<<<(n + 255) / 256, 256>>>(reinterpret_cast<const __half*>(x.data_ptr<at::Half>()),
        reinterpret_cast<__half*>(out.data_ptr<at::Half>()), (float)factor, n);
    return out;
}
""",
    functions=["scale"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.scale(x, 2.5)
