# problem: relu
# mechanism: a template's parameter and a reference are named signal, others system, kill and fork
# near: process_hook process_spawned
# warns: process_hook process_spawned
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="signals",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <functional>

using Activation = float (*)(float);

__global__ void relu_kernel(const float* in, float* out, int n) {
    auto system = [](float value) { return value > 0.f ? value : 0.f; };
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = system(in[i]);
}

template <typename Signal>
void launch(Signal&& signal, int n) {
    signal((n + 63) / 64, 64);
}

torch::Tensor relu(torch::Tensor x) {
    auto out = torch::empty_like(x);
    const at::Tensor& kill(out);
    std::function<void(int, int)> fork(
        [&](int grid, int block) { relu_kernel<<<grid, block>>>(x.data_ptr<float>(), kill.data_ptr<float>(), x.numel()); });
    launch(fork, x.numel());
    return out;
}
""",
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
