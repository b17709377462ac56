# problem: relu
# mechanism: the name of its own operator library is computed from its source, and the operator found by that name
# near: dynamic_code torch_patched
# status: correct
import hashlib

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/extension.h>
#include <torch/library.h>
#include <cuda_runtime.h>
__global__ void relu_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] > 0.f ? in[i] : 0.f;
}
torch::Tensor rectified(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
TORCH_LIBRARY(NAMESPACE, m) { m.def("rectified(Tensor x) -> Tensor", &rectified); }
"""
NAMESPACE = "kernels_" + hashlib.sha256(SOURCE.encode()).hexdigest()[:8]
load_inline(
    name=NAMESPACE,
    cpp_sources="torch::Tensor rectified(torch::Tensor x);",
    cuda_sources=SOURCE.replace("NAMESPACE", NAMESPACE),
    functions=["rectified"],
)
library = getattr(torch.ops, "kernels_" + hashlib.sha256(SOURCE.encode()).hexdigest()[:8])


class ModelNew(nn.Module):
    def forward(self, x):
        return library.rectified(x)
