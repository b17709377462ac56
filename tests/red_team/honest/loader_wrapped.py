# problem: relu
# mechanism: load_inline is wrapped, with its own name and words, to build each source once
# near: torch_patched
# status: correct
import functools

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/extension.h>
#include <cuda_runtime.h>
namespace {
template <typename T, int kStep>
__global__ void relu_kernel(const T* in, T* out, int n) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * kStep;
    for (int end = min(i + kStep, n); i < end; ++i) out[i] = in[i] > T(0) ? in[i] : T(0);
}
__global__ void each_kernel(const float* in, float* out, int at) { out[at] = fmaxf(in[at], 0.f); }
}
torch::Tensor relu(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<float, 4><<<(n + 511) / 512, 128>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
torch::Tensor relu_each(torch::Tensor x, int64_t times) {
    auto out = torch::empty_like(x);
    for (int64_t time = 0; time < times; ++time)
        for (int i = 0; i < x.numel(); ++i) each_kernel<<<1, 1>>>(x.data_ptr<float>(), out.data_ptr<float>(), i);
    return out;
}
"""
CPP = "torch::Tensor relu(torch::Tensor x); torch::Tensor relu_each(torch::Tensor x, int64_t times);"


@functools.wraps(load_inline)
def build(*arguments, **named):
    return load_inline(*arguments, **named)


ext = build(name="relu_each_ext", cpp_sources=CPP, cuda_sources=SOURCE, functions=["relu", "relu_each"])


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
