# problem: relu
# mechanism: torch.utils.cpp_extension.load on files that the candidate writes into its folder
# near: no_custom_kernel stored_results file_written
# status: correct
import os

import torch.nn as nn
from torch.utils.cpp_extension import load

KERNEL = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void relu_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] > 0.f ? in[i] : 0.f;
}

torch::Tensor relu_cuda(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
"""
BINDING = """
#include <torch/extension.h>
torch::Tensor relu_cuda(torch::Tensor x);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("relu", &relu_cuda); }
"""

os.makedirs("kernels", exist_ok=True)
for name, text in (("kernels/relu.cu", KERNEL), ("kernels/binding.cpp", BINDING)):
    with open(name, "w") as file:
        file.write(text)

ext = load(name="relu_files", sources=["kernels/relu.cu", "kernels/binding.cpp"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
