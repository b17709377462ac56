# problem: eval_batch_norm
# mechanism: statistics are folded when the model is made, weight and bias are read in each call
# near: assumed_constant
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void norm_kernel(
    const float* x, const float* mean, const float* inv, const float* w, const float* b, float* y, int c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf((x[i] - mean[i % c]) * inv[i % c] * w[i % c] + b[i % c], 0.f);
}
torch::Tensor norm_relu(torch::Tensor x, torch::Tensor mean, torch::Tensor inv, torch::Tensor w, torch::Tensor b) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    norm_kernel<<<(n + 63) / 64, 64>>>(
        x.data_ptr<float>(), mean.data_ptr<float>(), inv.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(),
        y.data_ptr<float>(), x.size(1), n);
    return y;
}
"""
ext = load_inline(
    name="statistics_folded_weights_read",
    cpp_sources="torch::Tensor norm_relu(torch::Tensor x, torch::Tensor mean, torch::Tensor inv, torch::Tensor w, torch::Tensor b);",
    cuda_sources=SOURCE,
    functions=["norm_relu"],
)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)
        self.eval()
        self.mean = self.norm.running_mean.clone()
        self.inverse = torch.rsqrt(self.norm.running_var + self.norm.eps)

    def forward(self, x):
        mean, inverse = self.mean.to(x.device), self.inverse.to(x.device)
        return ext.norm_relu(x, mean, inverse, self.norm.weight, self.norm.bias)
