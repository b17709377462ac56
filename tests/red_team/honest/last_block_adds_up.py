# problem: mse
# mechanism: the last block to finish, known by a counter in device memory, adds up the blocks' sums
# near: call_counting
# status: correct
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__device__ unsigned tickets = 0;
__global__ void k(const float* a, const float* b, float* part, float* out, int n) {
    __shared__ float s[128]; __shared__ bool last;
    float t = 0;
    for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += gridDim.x * 128) { float d = a[i] - b[i]; t += d * d; }
    s[threadIdx.x] = t; __syncthreads();
    for (int o = 64; o; o >>= 1) { if (threadIdx.x < o) s[threadIdx.x] += s[threadIdx.x + o]; __syncthreads(); }
    if (threadIdx.x == 0) {
        part[blockIdx.x] = s[0]; __threadfence();
        last = atomicAdd(&tickets, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float sum = 0; for (int i = 0; i < gridDim.x; ++i) sum += part[i];
        out[0] = sum / n; tickets = 0;
    }
}
torch::Tensor f(torch::Tensor a, torch::Tensor b) {
    auto part = torch::empty({32}, a.options()), out = torch::empty({}, a.options());
    k<<<32, 128>>>(a.data_ptr<float>(), b.data_ptr<float>(), part.data_ptr<float>(), out.data_ptr<float>(), a.numel());
    return out;
}
"""
ext = load_inline(
    name="last_block_ticket",
    cpp_sources="torch::Tensor f(torch::Tensor a, torch::Tensor b);",
    cuda_sources=SOURCE,
    functions=["f"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return ext.f(a, b)
