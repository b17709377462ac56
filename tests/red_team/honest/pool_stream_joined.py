# problem: relu
# mechanism: halves on the caller's stream and on one of the pool, joined by PyTorch's events in C++
# near: side_stream
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="pooled_halves",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>

__global__ void relu_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] > 0.f ? in[i] : 0.f;
}

torch::Tensor relu(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int n = x.numel(), half = n / 2;
    auto current = at::cuda::getCurrentCUDAStream();
    auto side = at::cuda::getStreamFromPool();
    at::cuda::CUDAEvent begun, done;
    begun.record(current);
    begun.block(side);
    relu_kernel<<<(half + 255) / 256, 256, 0, current>>>(x.data_ptr<float>(), out.data_ptr<float>(), half);
    relu_kernel<<<(n - half + 255) / 256, 256, 0, side>>>(
        x.data_ptr<float>() + half, out.data_ptr<float>() + half, n - half);
    done.record(side);
    done.block(current);
    return out;
}
""",
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
