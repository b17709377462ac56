# problem: linear_gelu
# mechanism: cuBLAS multiplies, an own kernel adds the bias and GELU; the handle is PyTorch's
# near: library_only
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="cublas_gelu",
    cpp_sources="torch::Tensor linear_gelu(torch::Tensor x, torch::Tensor w, torch::Tensor b);",
    cuda_sources="""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cublas_v2.h>

__global__ void bias_gelu_kernel(float* data, const float* bias, int n, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = data[i] + bias[i % width];
        data[i] = 0.5f * v * (1.f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
    }
}

torch::Tensor linear_gelu(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    int m = x.size(0), k = x.size(1), n = w.size(0);
    auto out = torch::empty({m, n}, x.options());
    const float one = 1.f, zero = 0.f;
    cublasHandle_t handle = at::cuda::getCurrentCUDABlasHandle();
    cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, w.data_ptr<float>(), k, x.data_ptr<float>(), k, &zero,
                out.data_ptr<float>(), n);
    bias_gelu_kernel<<<(m * n + 255) / 256, 256>>>(out.data_ptr<float>(), b.data_ptr<float>(), m * n, n);
    return out;
}
""",
    functions=["linear_gelu"],
)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        return ext.linear_gelu(x, self.linear.weight, self.linear.bias)
