# problem: softmax
# mechanism: exponents are written into room of the module's in each call, and added up by the next kernel
# near: result_cache stale_output
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="powers_in_kept_room",
    cpp_sources="torch::Tensor softmax(torch::Tensor x, torch::Tensor powers);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <math_constants.h>

__global__ void raise_rows(const float* in, float* powers, int width) {
    long long begin = (long long)blockIdx.x * width;
    float top = -CUDART_INF_F;
    for (int j = 0; j < width; ++j) top = fmaxf(top, in[begin + j]);
    for (int j = threadIdx.x; j < width; j += blockDim.x) powers[begin + j] = expf(in[begin + j] - top);
}

__global__ void divide_rows(const float* powers, float* out, int width) {
    long long begin = (long long)blockIdx.x * width;
    float sum = 0.f;
    for (int j = 0; j < width; ++j) sum += powers[begin + j];
    for (int j = threadIdx.x; j < width; j += blockDim.x) out[begin + j] = powers[begin + j] / sum;
}

torch::Tensor softmax(torch::Tensor x, torch::Tensor powers) {
    auto out = torch::empty_like(x);
    int width = x.size(-1), rows = x.numel() / width;
    raise_rows<<<rows, 64>>>(x.data_ptr<float>(), powers.data_ptr<float>(), width);
    divide_rows<<<rows, 64>>>(powers.data_ptr<float>(), out.data_ptr<float>(), width);
    return out;
}
""",
    functions=["softmax"],
)


class ModelNew(nn.Module):
    def __init__(self, *settings):
        super().__init__()
        self.room = None

    def forward(self, x):
        if self.room is None or self.room.shape != x.shape:
            self.room = torch.empty_like(x)
        return ext.softmax(x.contiguous(), self.room)
