# problem: plane_mean
# mechanism: a kernel sums the two halves of each plane, PyTorch adds the two, a second kernel divides
# near: host_computation
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="parts_joined_between_launches",
    cpp_sources="torch::Tensor halves(torch::Tensor x); torch::Tensor divided(torch::Tensor sums, long count);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void halves_kernel(const float* in, double* out, int planes, int half) {
    int part = blockIdx.x * blockDim.x + threadIdx.x;
    if (part >= 2 * planes) return;
    const float* from = in + (size_t)part * half;
    double sum = 0.0;
    for (int i = 0; i < half; ++i) sum += from[i];
    out[part % 2 * planes + part / 2] = sum;
}

__global__ void divide_kernel(const double* sums, float* out, int n, double count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = (float)(sums[i] / count);
}

torch::Tensor halves(torch::Tensor x) {
    int planes = x.size(0) * x.size(1), half = x.size(2) * x.size(3) / 2;
    auto out = torch::empty({2, x.size(0), x.size(1)}, x.options().dtype(torch::kFloat64));
    halves_kernel<<<(2 * planes + 31) / 32, 32>>>(x.data_ptr<float>(), out.data_ptr<double>(), planes, half);
    return out;
}

torch::Tensor divided(torch::Tensor sums, long count) {
    auto out = torch::empty(sums.sizes(), sums.options().dtype(torch::kFloat32));
    int n = sums.numel();
    divide_kernel<<<(n + 31) / 32, 32>>>(sums.data_ptr<double>(), out.data_ptr<float>(), n, (double)count);
    return out;
}
""",
    functions=["halves", "divided"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        first, second = ext.halves(x.contiguous())
        return ext.divided(first + second, x.shape[2] * x.shape[3])
