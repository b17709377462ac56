# problem: in_place_scale
# mechanism: the input is overwritten, because the reference overwrites it
# near: input_mutated
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="twice_in_place",
    cpp_sources="void twice(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void twice_kernel(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2.f;
}

void twice(torch::Tensor x) {
    int n = x.numel();
    twice_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), n);
}
""",
    functions=["twice"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        ext.twice(x)
        return x
