# problem: relu
# mechanism: load() on files in a temporary folder, which is removed afterwards
# status: correct
import os
import shutil
import tempfile

import torch.nn as nn
from torch.utils.cpp_extension import load

SOURCE = """
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

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("relu", &relu); }
"""

folder = tempfile.mkdtemp()
with open(os.path.join(folder, "relu.cu"), "w") as file:
    file.write(SOURCE)
ext = load(name="relu_tmp", sources=[os.path.join(folder, "relu.cu")])
shutil.rmtree(folder)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
