# problem: relu
# mechanism: extern "C" kernel, static and inline host functions, and a loop counter in the kernel
# near: call_counting
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="relu_extern",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

extern "C" __global__ void relu_kernel(const float* in, float* out, int n, int repeats) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int count = 0;
    float value = 0.f;
    while (count < repeats) {
        ++count;
        if (i < n) value = in[i] > 0.f ? in[i] : 0.f;
    }
    if (i < n) out[i] = value;
}

static inline int blocks_for(int n) { return (n + 255) / 256; }

torch::Tensor relu(torch::Tensor x) {
    auto out = torch::empty_like(x);
    relu_kernel<<<blocks_for(x.numel()), 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.numel(), 2);
    return out;
}
""",
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
