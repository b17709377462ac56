# problem: relu
# mechanism: variables and members named system, kill and connect, made by constructors
# near: process_spawned network_access
# warns: process_spawned network_access
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="slopes",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <vector>

struct Plan {
    std::vector<int64_t> system;
    int kill;
    explicit Plan(int64_t taps) : system(taps), kill(0) {}
};

__global__ void relu_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] > 0.f ? in[i] : 0.f;
}

torch::Tensor relu(torch::Tensor x) {
    const int64_t taps = x.dim();
    std::vector<int64_t> system(taps), connect(x.sizes().begin(), x.sizes().end());
    Plan plan(taps);
    auto out = torch::empty(connect, x.options());
    int n = x.numel() + system[0] + plan.system[0];
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
""",
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
