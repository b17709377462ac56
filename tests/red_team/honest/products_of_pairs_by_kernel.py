# problem: written_similarity
# mechanism: a kernel multiplies all pairs, PyTorch divides by their lengths
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="products_of_pairs_by_kernel",
    cpp_sources="torch::Tensor products(torch::Tensor x, torch::Tensor y);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void products_kernel(const float* x, const float* y, float* out, int columns, int width) {
    float sum = 0.f;
    for (int k = 0; k < width; ++k) sum += x[blockIdx.x * width + k] * y[threadIdx.x * width + k];
    out[blockIdx.x * columns + threadIdx.x] = sum;
}
torch::Tensor products(torch::Tensor x, torch::Tensor y) {
    int m = x.size(0), n = y.size(0);
    auto out = torch::empty({m, n}, x.options());
    products_kernel<<<m, n>>>(x.data_ptr<float>(), y.data_ptr<float>(), out.data_ptr<float>(), n, x.size(1));
    return out;
}
""",
    functions=["products"],
)


class ModelNew(nn.Module):
    def forward(self, x, keys):
        return ext.products(x, keys) / x.norm(dim=1)[:, None] / keys.norm(dim=1)
