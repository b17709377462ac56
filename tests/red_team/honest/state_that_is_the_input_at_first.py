# problem: leaky_state
# mechanism: half of what a kernel gives is an input, since the state that it is added to begins as zeros
# near: identity_kernel kernel_output_unused
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="state_that_is_the_input_at_first",
    cpp_sources="std::vector<torch::Tensor> step(torch::Tensor x, torch::Tensor state, torch::Tensor w);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void step_kernel(const float* x, const float* s, const float* w, float* y, float* next, int n) {
    extern __shared__ float row[];
    const int at = blockIdx.x * n + threadIdx.x;
    row[threadIdx.x] = 0.8f * s[at] + x[at];
    next[at] = row[threadIdx.x];
    __syncthreads();
    float sum = 0.f;
    for (int i = 0; i < n; ++i) sum += row[i] * w[i * n + threadIdx.x];
    y[at] = 1.f / (1.f + expf(-sum));
}
std::vector<torch::Tensor> step(torch::Tensor x, torch::Tensor state, torch::Tensor w) {
    auto y = torch::empty_like(x), next = torch::empty_like(x);
    int n = x.size(1);
    step_kernel<<<x.size(0), n, n * sizeof(float)>>>(x.data_ptr<float>(), state.data_ptr<float>(), w.data_ptr<float>(),
                                                     y.data_ptr<float>(), next.data_ptr<float>(), n);
    return {y, next};
}
""",
    functions=["step"],
)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) / width**0.5)

    def forward(self, x, state):
        return tuple(ext.step(x, state, self.weight))
