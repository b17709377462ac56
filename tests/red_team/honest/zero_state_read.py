# problem: leaky_cell
# mechanism: a state that is zero here is read as a whole
# near: assumed_constant
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="zero_state_read",
    cpp_sources="torch::Tensor step(torch::Tensor x, torch::Tensor state, torch::Tensor mix);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void step_kernel(const float* x, const float* state, const float* mix, float* y, int size) {
    int j = threadIdx.x;
    const float* own = state + blockIdx.x * size;
    float sum = x[blockIdx.x * size + j];
    for (int k = 0; k < size; ++k) sum += own[k] * mix[k * size + j];
    y[blockIdx.x * size + j] = 0.5f * own[j] + tanhf(sum);
}

torch::Tensor step(torch::Tensor x, torch::Tensor state, torch::Tensor mix) {
    auto y = torch::empty_like(x);
    step_kernel<<<x.size(0), x.size(1)>>>(x.data_ptr<float>(), state.data_ptr<float>(), mix.data_ptr<float>(),
                                          y.data_ptr<float>(), (int)x.size(1));
    return y;
}
""",
    functions=["step"],
)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.mix = nn.Parameter(torch.randn(size, size) * 0.3)

    def forward(self, x, state):
        return ext.step(x, state, self.mix)
