# problem: relu
# mechanism: the kernel's text is made with replace and an f-string
# near: no_custom_kernel
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

THREADS = 128
BODY = "in[i] > 0.f ? in[i] : 0.f"
SOURCE = f"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void relu_kernel(const float* in, float* out, int n) {{
    int i = blockIdx.x * {THREADS} + threadIdx.x;
    if (i < n) out[i] = {BODY};
}}

torch::Tensor NAME(torch::Tensor x) {{
    auto out = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + {THREADS - 1}) / {THREADS}, {THREADS}>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}}
""".replace("NAME", "relu")

ext = load_inline(
    name="relu_formatted", cpp_sources="torch::Tensor relu(torch::Tensor x);", cuda_sources=SOURCE, functions=["relu"]
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
