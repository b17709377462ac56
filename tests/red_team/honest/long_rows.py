# problem: long_softmax
# mechanism: values below a millionth, right to six digits
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="long_rows",
    cpp_sources="torch::Tensor softmax(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void sum_kernel(const float* in, double* sums, int columns) {
    __shared__ double part[256];
    const float* row = in + (long)blockIdx.x * columns;
    double sum = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += expf(row[i]);
    part[threadIdx.x] = sum;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}
__global__ void divide_kernel(const float* in, const double* sums, float* out, int columns, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = (float)(expf(in[i]) / sums[i / columns]);
}
torch::Tensor softmax(torch::Tensor x) {
    int rows = x.size(0), columns = x.size(1), n = x.numel();
    auto sums = torch::empty({rows}, x.options().dtype(torch::kFloat64));
    auto out = torch::empty_like(x);
    sum_kernel<<<rows, 256>>>(x.data_ptr<float>(), sums.data_ptr<double>(), columns);
    divide_kernel<<<(n + 255) / 256, 256>>>(
        x.data_ptr<float>(), sums.data_ptr<double>(), out.data_ptr<float>(), columns, n);
    return out;
}
""",
    functions=["softmax"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.softmax(x)
