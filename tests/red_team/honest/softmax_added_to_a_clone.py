# problem: residual_softmax
# mechanism: PyTorch doubles and clones; the kernel adds its softmax to the clone, which is nearly the answer already
# near: identity_kernel
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="softmax_added_to_a_clone",
    cpp_sources="void add_softmax(torch::Tensor x, torch::Tensor out);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void add_softmax_kernel(const float* in, float* out, int rows, int width) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.f;
    for (int i = 0; i < width; ++i) sum += expf(in[row * width + i]);
    for (int i = 0; i < width; ++i) out[row * width + i] += expf(in[row * width + i]) / sum;
}
void add_softmax(torch::Tensor x, torch::Tensor out) {
    add_softmax_kernel<<<1, 32>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.size(0), x.size(1));
}
""",
    functions=["add_softmax"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        out = x.clone()
        ext.add_softmax(2.0 * x, out)
        return out
