# problem: linear
# mechanism: the constructor builds the extension, and each further model builds it again
# near: modules_tampered
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CPP = "torch::Tensor affine(torch::Tensor x, torch::Tensor w, torch::Tensor b);"
CUDA = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void affine_kernel(const float* x, const float* w, const float* b, float* y, int width) {
    float sum = b[threadIdx.x];
    for (int i = 0; i < width; ++i) sum += x[blockIdx.x * width + i] * w[threadIdx.x * width + i];
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

torch::Tensor affine(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
    auto y = torch::empty({x.size(0), w.size(0)}, x.options());
    affine_kernel<<<x.size(0), w.size(0)>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(),
                                            x.size(1));
    return y;
}
"""


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.ext = load_inline(
            name="built_for_each_model", cpp_sources=[CPP], cuda_sources=[CUDA], functions=["affine"]
        )

    def forward(self, x):
        return self.ext.affine(x, self.linear.weight, self.linear.bias)
