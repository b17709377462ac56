# problem: layer_norm
# mechanism: weights are copied into one tensor when the model is made, and the kernel reads that
# near: assumed_constant
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="norm_folded_weights",
    cpp_sources="torch::Tensor rows_normed(torch::Tensor x, torch::Tensor w, double eps);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void norm_kernel(const float* x, const float* w, const float* b, float* y, int width, float eps) {
    const float* row = x + (long long)blockIdx.x * width;
    __shared__ float total, spread;
    if (threadIdx.x == 0) {
        double sum = 0, square = 0;
        for (int i = 0; i < width; ++i) sum += row[i];
        const double mean = sum / width;
        for (int i = 0; i < width; ++i) square += (row[i] - mean) * (row[i] - mean);
        total = (float)mean;
        spread = rsqrtf((float)(square / width) + eps);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < width; i += blockDim.x) y[(long long)blockIdx.x * width + i] = (row[i] - total) * spread * w[i] + b[i];
}

torch::Tensor rows_normed(torch::Tensor x, torch::Tensor w, double eps) {
    auto y = torch::empty_like(x);
    norm_kernel<<<x.size(0), 32>>>(x.data_ptr<float>(), w.data_ptr<float>(), w.data_ptr<float>() + x.size(1), y.data_ptr<float>(),
                                   x.size(1), (float)eps);
    return y;
}
""",
    functions=["rows_normed"],
)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.packed = [torch.cat([self.norm.weight, self.norm.bias]).detach()]

    def forward(self, x):
        return ext.rows_normed(x, self.packed[0].to(x.device), self.norm.eps)
