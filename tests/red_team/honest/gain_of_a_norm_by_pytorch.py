# problem: layer_norm
# mechanism: a kernel takes mean and spread of rows away, PyTorch gives the gain and the shift
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="gain_of_a_norm_by_pytorch",
    cpp_sources="torch::Tensor centred(torch::Tensor x, double eps);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void centred_kernel(const float* x, float* y, float eps, int width) {
    const float* row = x + blockIdx.x * width;
    float sum = 0.f, squares = 0.f;
    for (int k = 0; k < width; ++k) sum += row[k];
    float mean = sum / width;
    for (int k = 0; k < width; ++k) squares += (row[k] - mean) * (row[k] - mean);
    float factor = rsqrtf(squares / width + eps);
    for (int k = threadIdx.x; k < width; k += blockDim.x) y[blockIdx.x * width + k] = (row[k] - mean) * factor;
}
torch::Tensor centred(torch::Tensor x, double eps) {
    auto y = torch::empty_like(x);
    int width = x.size(-1);
    centred_kernel<<<x.numel() / width, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), eps, width);
    return y;
}
""",
    functions=["centred"],
)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return ext.centred(x.contiguous(), self.norm.eps) * self.norm.weight + self.norm.bias
