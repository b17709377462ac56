"""Two kernels: a naive product with swish, then one warp for each row and group, in place."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void linear_swish_kernel(
    const float* x, const float* weight, const float* bias, float* y, int rows, int inner, int columns) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns) return;
    float sum = bias[column];
    for (int k = 0; k < inner; ++k) sum += x[row * inner + k] * weight[column * inner + k];
    y[row * columns + column] = sum / (1.0f + expf(-sum));
}

__global__ void group_norm_kernel(
    float* y, const float* weight, const float* bias, int units, int columns, int groups, float eps) {
    int unit = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (unit >= units) return;
    int size = columns / groups, first = unit % groups * size;
    float* p = y + (size_t)(unit / groups) * columns + first;
    float mean = 0.0f, squares = 0.0f;
    for (int i = lane; i < size; i += 32) mean += p[i];
    for (int m = 16; m > 0; m >>= 1) mean += __shfl_xor_sync(0xffffffff, mean, m);
    mean /= size;
    for (int i = lane; i < size; i += 32) squares += (p[i] - mean) * (p[i] - mean);
    for (int m = 16; m > 0; m >>= 1) squares += __shfl_xor_sync(0xffffffff, squares, m);
    float scale = rsqrtf(squares / size + eps);
    for (int i = lane; i < size; i += 32) p[i] = (p[i] - mean) * scale * weight[first + i] + bias[first + i];
}

torch::Tensor linear_swish_group_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias,
                                      torch::Tensor norm_weight, torch::Tensor norm_bias, int64_t groups, double eps) {
    int rows = x.size(0), inner = x.size(1), columns = weight.size(0);
    auto y = torch::empty({rows, columns}, x.options());
    dim3 threads(16, 16);
    dim3 blocks((columns + 15) / 16, (rows + 15) / 16);
    linear_swish_kernel<<<blocks, threads>>>(
        x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(),
        rows, inner, columns);
    int units = rows * groups;
    group_norm_kernel<<<(units + 3) / 4, 128>>>(
        y.data_ptr<float>(), norm_weight.data_ptr<float>(), norm_bias.data_ptr<float>(), units, columns, groups, eps);
    return y;
}
"""

cpp_source = """
torch::Tensor linear_swish_group_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias,
                                      torch::Tensor norm_weight, torch::Tensor norm_bias, int64_t groups, double eps);
"""

kernels = load_inline(
    name="mini_linear_swish_group_norm",
    cpp_sources=cpp_source,
    cuda_sources=cuda_source,
    functions=["linear_swish_group_norm"],
)


class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, groups):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        nn.init.normal_(self.linear.bias, std=0.5)
        self.norm = nn.GroupNorm(groups, out_features)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias, std=0.3)

    def forward(self, x):
        linear, norm = self.linear, self.norm
        return kernels.linear_swish_group_norm(
            x.contiguous(), linear.weight, linear.bias, norm.weight, norm.bias, norm.num_groups, norm.eps
        )
