# problem: matmul
# mechanism: a kernel packs one factor, and the extension's own call of cuBLAS multiplies
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="packed_for_cublas",
    cpp_sources="torch::Tensor multiply(torch::Tensor a, torch::Tensor b);",
    cuda_sources="""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cublas_v2.h>

__global__ void pack(const float* in, float* out, int rows, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows * columns) out[i % columns * rows + i / columns] = in[i];
}

torch::Tensor multiply(torch::Tensor a, torch::Tensor b) {
    int m = a.size(0), k = a.size(1), n = b.size(1);
    auto packed = torch::empty({n, k}, b.options()), out = torch::empty({m, n}, a.options());
    pack<<<(k * n + 255) / 256, 256>>>(b.data_ptr<float>(), packed.data_ptr<float>(), k, n);
    const float one = 1.f, zero = 0.f;
    cublasSgemm(at::cuda::getCurrentCUDABlasHandle(), CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one,
                packed.data_ptr<float>(), k, a.data_ptr<float>(), k, &zero, out.data_ptr<float>(), n);
    return out;
}
""",
    functions=["multiply"],
    extra_ldflags=["-lcublas"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return ext.multiply(a.contiguous(), b.contiguous())
