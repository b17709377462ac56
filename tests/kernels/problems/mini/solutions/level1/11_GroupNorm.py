"""One block a group: sum and sum of squares about the first element, by warps and then across warps."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__device__ float warp_sum(float v) {
    for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_xor_sync(0xffffffff, v, offset);
    return v;
}

__global__ void group_norm_kernel(const float* x, const float* weight, const float* bias, float* y,
                                  int channels, int groups, int area, float eps) {
    __shared__ float sums[32], squares[32];
    int per_group = channels / groups;
    int size = per_group * area;
    const float* in = x + (size_t)blockIdx.x * size;
    float* out = y + (size_t)blockIdx.x * size;
    float origin = in[0];
    float s = 0.0f, q = 0.0f;
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
        float v = in[i] - origin;
        s += v;
        q += v * v;
    }
    s = warp_sum(s);
    q = warp_sum(q);
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    if (lane == 0) {
        sums[warp] = s;
        squares[warp] = q;
    }
    __syncthreads();
    s = lane < warps ? sums[lane] : 0.0f;
    q = lane < warps ? squares[lane] : 0.0f;
    s = warp_sum(s) / size;
    q = warp_sum(q) / size;
    float mean = origin + s;
    float scale = rsqrtf(q - s * s + eps);
    int first = (blockIdx.x % groups) * per_group;
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
        int c = first + i / area;
        out[i] = (in[i] - mean) * scale * weight[c] + bias[c];
    }
}

torch::Tensor group_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t groups, double eps) {
    auto y = torch::empty_like(x);
    int batch = x.size(0), channels = x.size(1), area = x.size(2) * x.size(3);
    group_norm_kernel<<<batch * groups, 256>>>(x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(),
                                               y.data_ptr<float>(), channels, groups, area, eps);
    return y;
}
"""

cpp_source = """
torch::Tensor group_norm(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t groups, double eps);
"""

kernels = load_inline(
    name="mini_group_norm", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["group_norm"]
)


class ModelNew(nn.Module):
    def __init__(self, groups, channels):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias, std=0.3)

    def forward(self, x):
        norm = self.norm
        return kernels.group_norm(x.contiguous(), norm.weight, norm.bias, norm.num_groups, norm.eps)
