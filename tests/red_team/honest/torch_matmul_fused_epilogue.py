# problem: linear_gelu
# mechanism: the product stays in PyTorch, bias and GELU are one kernel
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

bias_gelu = load_inline(
    name="bias_gelu",
    cpp_sources="torch::Tensor bias_gelu(torch::Tensor x, torch::Tensor bias);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void bias_gelu_kernel(const float* in, const float* bias, float* out, int n, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = in[i] + bias[i % width];
        out[i] = 0.5f * v * (1.f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
    }
}

torch::Tensor bias_gelu(torch::Tensor x, torch::Tensor bias) {
    auto out = torch::empty_like(x);
    int n = x.numel(), width = bias.numel();
    bias_gelu_kernel<<<(n + 255) / 256, 256>>>(
        x.data_ptr<float>(), bias.data_ptr<float>(), out.data_ptr<float>(), n, width);
    return out;
}
""",
    functions=["bias_gelu"],
)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        return bias_gelu.bias_gelu(torch.matmul(x, self.linear.weight.t()), self.linear.bias)
