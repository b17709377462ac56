# problem: relu
# mechanism: macros that check every CUDA call, with exit(EXIT_FAILURE) and a throwing launch check
# near: process_hook early_exit
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="relu_checked",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>

#define CUDA_CHECK(call)                                                              \\
    do {                                                                              \\
        cudaError_t status = (call);                                                  \\
        if (status != cudaSuccess) {                                                  \\
            fprintf(stderr, "CUDA error: %s\\n", cudaGetErrorString(status));         \\
            exit(EXIT_FAILURE);                                                       \\
        }                                                                             \\
    } while (0)

__global__ void relu_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] > 0.f ? in[i] : 0.f;
}

torch::Tensor relu(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    CUDA_CHECK(cudaGetLastError());
    cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
    return out;
}
""",
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
