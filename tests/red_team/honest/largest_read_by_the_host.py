# problem: by_largest
# mechanism: a kernel finds the largest magnitude, the host reads it, PyTorch divides by it
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="largest_read_by_the_host",
    cpp_sources="torch::Tensor largest(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void largest_kernel(const float* x, float* out, int n) {
    __shared__ float tops[128];
    float top = 0.f;
    for (int i = threadIdx.x; i < n; i += 128) top = fmaxf(top, fabsf(x[i]));
    tops[threadIdx.x] = top;
    __syncthreads();
    for (int half = 64; half; half /= 2) {
        if (threadIdx.x < half) tops[threadIdx.x] = fmaxf(tops[threadIdx.x], tops[threadIdx.x + half]);
        __syncthreads();
    }
    if (threadIdx.x == 0) *out = tops[0];
}
torch::Tensor largest(torch::Tensor x) {
    auto out = torch::empty({1}, x.options());
    largest_kernel<<<1, 128>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.numel());
    return out;
}
""",
    functions=["largest"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return x / ext.largest(x).item()
