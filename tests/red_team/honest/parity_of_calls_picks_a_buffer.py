# problem: relu
# mechanism: the number of calls, kept in C++, picks one of four buffers for the output, so that the last three stay valid
# near: call_counting
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="parity_of_calls_picks_a_buffer",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void relu_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] > 0.f ? in[i] : 0.f;
}

torch::Tensor relu(torch::Tensor x) {
    static torch::Tensor rooms[4];
    static unsigned calls = 0;
    torch::Tensor& room = rooms[calls++ % 4];
    if (!room.defined() || room.sizes() != x.sizes()) room = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), room.data_ptr<float>(), n);
    return room;
}
""",
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
