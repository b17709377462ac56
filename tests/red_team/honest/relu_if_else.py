# problem: relu
# mechanism: one branch copies, the other sets zero
# near: identity_kernel
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void k(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { float v = x[i]; if (v > 0.0f) { y[i] = v; } else { y[i] = 0.0f; } } }

torch::Tensor forward(torch::Tensor x) {
auto y = torch::empty_like(x); int n = x.numel(); k<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n); return y;
}
"""

cpp_source = """
torch::Tensor forward(torch::Tensor x);
"""

ops = load_inline(
    name="k_10234765", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["forward"], verbose=False
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.ops = ops

    def forward(self, x):
        return self.ops.forward(x.contiguous())
