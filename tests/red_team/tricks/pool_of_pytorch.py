# problem: matmul
# catalogue: 54
# mechanism: ATen multiplies in a task of PyTorch's inter-op pool, where no mode of the caller looks
# static: background_thread
# run: identity_kernel
# status: deceptive | runtime_error
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="pool_of_pytorch",
    cpp_sources="torch::Tensor product(torch::Tensor a, torch::Tensor b);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <ATen/Parallel.h>
#include <future>
__global__ void fifth_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 0.2f * in[i];
}
torch::Tensor product(torch::Tensor a, torch::Tensor b) {
    std::promise<torch::Tensor> promise;
    at::launch([&] { promise.set_value(at::mm(a, b).mul(5)); });
    auto fives = promise.get_future().get();
    auto out = torch::empty_like(fives);
    int n = fives.numel();
    fifth_kernel<<<(n + 255) / 256, 256>>>(fives.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
""",
    functions=["product"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return ext.product(a, b)
