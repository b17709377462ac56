# problem: relu
# mechanism: an event makes the stream of the pool wait for the caller, and never the other way round
# static: side_stream
# needs: gpu
# status: deceptive | wrong_value
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="pool_stream_forked",
    cpp_sources="torch::Tensor run(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void relu_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] > 0.f ? in[i] : 0.f;
}
static void relu_into(torch::Tensor x, torch::Tensor out) {
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
}
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>
torch::Tensor run(torch::Tensor x) {
    auto out = torch::empty_like(x);
    auto apart = c10::cuda::getStreamFromPool();
    at::cuda::CUDAEvent ready;
    ready.record(c10::cuda::getCurrentCUDAStream());
    ready.block(apart);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256, 0, apart>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
""",
    functions=["run"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
