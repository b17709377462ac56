# problem: mse
# mechanism: block sums by a kernel, the last few numbers added by torch
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="mse_blocks",
    cpp_sources="torch::Tensor squared_error(torch::Tensor a, torch::Tensor b);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void squared_error_kernel(const float* a, const float* b, float* out, int n, int each) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.f;
    for (int i = t * each; i < min(n, (t + 1) * each); ++i) {
        float d = a[i] - b[i];
        sum += d * d;
    }
    out[t] = sum;
}

torch::Tensor squared_error(torch::Tensor a, torch::Tensor b) {
    int n = a.numel(), threads = 256, each = (n + threads - 1) / threads;
    auto out = torch::empty({threads}, a.options());
    squared_error_kernel<<<4, 64>>>(a.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<float>(), n, each);
    return out;
}
""",
    functions=["squared_error"],
)


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        return ext.squared_error(predictions, targets).sum() / predictions.numel()
