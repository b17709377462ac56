# problem: relu
# mechanism: an empty tensor is returned for an empty input
# near: uninitialised_output
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>


__global__ void relu_kernel(const float* x, float* y, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] > 0 ? x[i] : 0; }
torch::Tensor forward(torch::Tensor x) { auto y = torch::empty_like(x); int n = x.numel(); relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n); return y; }

"""

cpp_source = """
torch::Tensor forward(torch::Tensor x);
"""

ops = load_inline(
    name="k_91456517", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["forward"], verbose=False
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.ops = ops

    def forward(self, x):
        if x.numel() == 0:
            return torch.empty_like(x)
        return self.ops.forward(x.contiguous())
