# problem: drawn_rows
# mechanism: a further launch prepares a workspace whenever a call brings a new height
# near: watched_call
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="relu_times",
    cpp_sources="torch::Tensor relu_times(torch::Tensor x, double times);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void relu_times_kernel(const float* in, float* out, float times, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = fmaxf(in[i], 0.f) * times;
}

torch::Tensor relu_times(torch::Tensor x, double times) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    relu_times_kernel<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), out.data_ptr<float>(), (float)times, n);
    return out;
}
""",
    functions=["relu_times"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.spaces = {}

    def forward(self, x, times):
        if x.shape not in self.spaces:
            self.spaces[x.shape] = ext.relu_times(torch.zeros_like(x), 1.0)
        return ext.relu_times(x, float(times))
