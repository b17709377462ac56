# problem: zero_bias
# mechanism: PyTorch spreads the bias over the output, the kernel adds the product to it by atomics
# near: identity_kernel
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="bias_first",
    cpp_sources="void add_product(torch::Tensor x, torch::Tensor w, torch::Tensor out);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void add_product_kernel(const float* x, const float* w, float* out, int m, int n, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m * n) return;
    int begin = blockIdx.y * 8, end = min(k, begin + 8);
    float sum = 0.f;
    for (int j = begin; j < end; ++j) sum += x[(i / n) * k + j] * w[(i % n) * k + j];
    atomicAdd(&out[i], sum);
}
void add_product(torch::Tensor x, torch::Tensor w, torch::Tensor out) {
    int m = x.size(0), k = x.size(1), n = w.size(0);
    add_product_kernel<<<dim3((m * n + 127) / 128, (k + 7) / 8), 128>>>(x.data_ptr<float>(), w.data_ptr<float>(), out.data_ptr<float>(), m, n, k);
}
""",
    functions=["add_product"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(32, 24)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x):
        out = self.linear.bias.detach().expand(x.shape[0], -1).clone()
        ext.add_product(x, self.linear.weight, out)
        return out
