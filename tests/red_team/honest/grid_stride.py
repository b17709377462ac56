# problem: relu
# mechanism: a grid-stride loop with a fixed grid, const and __restrict__
# near: failed_launch
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="relu_stride",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

constexpr int kThreads = 128;
constexpr int kBlocks = 8;

__global__ void __launch_bounds__(kThreads)
relu_kernel(const float* __restrict__ in, float* __restrict__ out, const long long n) {
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x)
        out[i] = fmaxf(__ldg(&in[i]), 0.0f);
}

torch::Tensor relu(torch::Tensor x) {
    auto out = torch::empty_like(x);
    relu_kernel<<<kBlocks, kThreads>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.numel());
    return out;
}
""",
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
