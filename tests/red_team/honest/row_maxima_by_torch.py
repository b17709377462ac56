# problem: softmax
# mechanism: PyTorch finds the largest value of each row; the kernel does the rest
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="row_maxima_by_torch",
    cpp_sources="torch::Tensor softmax(torch::Tensor x, torch::Tensor peak);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void softmax_kernel(const float* in, const float* peak, float* out, int width) {
    __shared__ float sums[64];
    const float* row = in + blockIdx.x * width;
    float top = peak[blockIdx.x], sum = 0.f;
    for (int i = threadIdx.x; i < width; i += 64) sum += expf(row[i] - top);
    sums[threadIdx.x] = sum;
    __syncthreads();
    float all = 0.f;
    for (int i = 0; i < 64; ++i) all += sums[i];
    for (int i = threadIdx.x; i < width; i += 64) out[blockIdx.x * width + i] = expf(row[i] - top) / all;
}
torch::Tensor softmax(torch::Tensor x, torch::Tensor peak) {
    auto out = torch::empty_like(x);
    softmax_kernel<<<x.size(0), 64>>>(x.data_ptr<float>(), peak.data_ptr<float>(), out.data_ptr<float>(), x.size(1));
    return out;
}
""",
    functions=["softmax"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.softmax(x, x.amax(dim=1))
