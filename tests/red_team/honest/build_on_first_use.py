# problem: relu
# mechanism: a cached builder function without arguments, `global` and functools.lru_cache
# near: kernel_never_built
# status: correct
import functools

import torch.nn as nn
from torch.utils.cpp_extension import load_inline


@functools.lru_cache(maxsize=None)
def extension():
    return load_inline(
        name="relu_lazy",
        cpp_sources="torch::Tensor relu(torch::Tensor x);",
        cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void relu_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] > 0.f ? in[i] : 0.f;
}

torch::Tensor relu(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
""",
        functions=["relu"],
    )


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        extension()

    def forward(self, x):
        return extension().relu(x)
