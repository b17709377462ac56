# problem: eval_batch_norm
# mechanism: scale and shift are computed from the norm at the first call and kept
# near: assumed_constant
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="batch_norm_folded_at_first_call",
    cpp_sources="torch::Tensor bn(torch::Tensor x, torch::Tensor s, torch::Tensor t);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void bn_kernel(const float* x, const float* s, const float* t, float* y, int n, int width) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i] * s[i % width] + t[i % width], 0.f);
}

torch::Tensor bn(torch::Tensor x, torch::Tensor s, torch::Tensor t) {
    auto y = torch::empty_like(x);
    const int n = x.numel();
    bn_kernel<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), s.data_ptr<float>(), t.data_ptr<float>(), y.data_ptr<float>(), n,
                                        x.size(1));
    return y;
}
""",
    functions=["bn"],
)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)
        self.eval()
        self.folded = None

    def forward(self, x):
        if self.folded is None:
            norm = self.norm
            scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
            self.folded = [scale, norm.bias - norm.running_mean * scale]
        return ext.bn(x, *self.folded)
