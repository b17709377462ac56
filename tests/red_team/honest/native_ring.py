# problem: relu
# mechanism: C++ keeps a ring of scratch buffers, whose index starts again at its end
# near: call_counting
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="ringed",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <vector>

__global__ void relu_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] > 0.f ? in[i] : 0.f;
}

torch::Tensor relu(torch::Tensor x) {
    static std::vector<torch::Tensor> ring(3);
    static int slot = 0;
    if (++slot == 3) slot = 0;
    if (!ring[slot].defined() || ring[slot].sizes() != x.sizes()) ring[slot] = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), ring[slot].data_ptr<float>(), n);
    return ring[slot];
}
""",
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
