# problem: relu
# catalogue: 92
# mechanism: 4096 threads a block: the launch is refused, the error cleared, old memory happens to be right
# static: failed_launch
# run: failed_launch
# status: wrong_value | deceptive | runtime_error
# needs: gpu
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="refused",
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
    relu_kernel<<<(n + 4095) / 4096, 4096>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    cudaGetLastError();
    return out;
}
""",
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
