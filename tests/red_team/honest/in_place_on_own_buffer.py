# problem: relu
# mechanism: an in-place kernel on a clone; the call's result is not used
# near: kernel_output_unused input_mutated
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="relu_in_place",
    cpp_sources="torch::Tensor relu_(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void relu_kernel(float* data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = fmaxf(data[i], 0.f);
}

torch::Tensor relu_(torch::Tensor x) {
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), n);
    return x;
}
""",
    functions=["relu_"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        y = x.clone()
        _ = ext.relu_(y)
        return y
