# problem: row_sum
# mechanism: dynamic shared memory and a tree of barriers
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="row_sum_block",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void row_sum_kernel(const float* in, float* out, int width) {
    extern __shared__ float partial[];
    float sum = 0.f;
    for (int i = threadIdx.x; i < width; i += blockDim.x) sum += in[blockIdx.x * width + i];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

torch::Tensor row_sum(torch::Tensor x) {
    auto out = torch::empty({x.size(0)}, x.options());
    const int threads = 64;
    row_sum_kernel<<<x.size(0), threads, threads * sizeof(float)>>>(
        x.data_ptr<float>(), out.data_ptr<float>(), x.size(1));
    return out;
}
""",
    functions=["row_sum"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.row_sum(x)
