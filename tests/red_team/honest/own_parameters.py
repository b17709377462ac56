# problem: layer_norm
# mechanism: nn.Parameter with other names than the reference's, statistics by PyTorch, the rest by a kernel
# near: input_prediction
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="normalise",
    cpp_sources="torch::Tensor normalise(torch::Tensor x, torch::Tensor mean, torch::Tensor var, torch::Tensor g, "
    "torch::Tensor b);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void normalise_kernel(const float* in, const float* mean, const float* var, const float* g, const float* b,
                                 float* out, int n, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int row = i / width, col = i % width;
        out[i] = (in[i] - mean[row]) * rsqrtf(var[row] + 1e-5f) * g[col] + b[col];
    }
}

torch::Tensor normalise(torch::Tensor x, torch::Tensor mean, torch::Tensor var, torch::Tensor g, torch::Tensor b) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    normalise_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), mean.data_ptr<float>(), var.data_ptr<float>(),
        g.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(), n, x.size(1));
    return out;
}
""",
    functions=["normalise"],
)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        var, mean = torch.var_mean(x, dim=1, correction=0)
        return ext.normalise(x, mean, var, self.gain, self.shift)
