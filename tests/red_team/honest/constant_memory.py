# problem: linear_gelu
# mechanism: cudaMemcpyToSymbol, __constant__ coefficients
# near: host_computation
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="gelu_constant",
    cpp_sources="torch::Tensor gelu(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__constant__ float coefficients[2];

__global__ void gelu_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = in[i];
        out[i] = 0.5f * v * (1.f + tanhf(coefficients[0] * (v + coefficients[1] * v * v * v)));
    }
}

torch::Tensor gelu(torch::Tensor x) {
    const float host[2] = {0.7978845608f, 0.044715f};
    cudaMemcpyToSymbol(coefficients, host, sizeof(host));
    auto out = torch::empty_like(x);
    int n = x.numel();
    gelu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
""",
    functions=["gelu"],
)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        return ext.gelu(self.linear(x))
