"""One thread an output element: four neighbours, half-pixel centres."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void upsample_add_kernel(const float* coarse, const float* lateral, const float* weight, float* y,
                                    int n, int channels, int height, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int q = i % (2 * width), r = i / (2 * width) % (2 * height), plane = i / (4 * width * height);
    float fy = fmaxf(0.5f * (r + 0.5f) - 0.5f, 0.0f), fx = fmaxf(0.5f * (q + 0.5f) - 0.5f, 0.0f);
    int y0 = (int)fy, x0 = (int)fx;
    int y1 = min(y0 + 1, height - 1), x1 = min(x0 + 1, width - 1);
    float wy = fy - y0, wx = fx - x0;
    const float* p = coarse + (size_t)plane * height * width;
    float above = p[y0 * width + x0] * (1.0f - wx) + p[y0 * width + x1] * wx;
    float below = p[y1 * width + x0] * (1.0f - wx) + p[y1 * width + x1] * wx;
    y[i] = above * (1.0f - wy) + below * wy + weight[plane % channels] * lateral[i];
}

torch::Tensor upsample_add(torch::Tensor coarse, torch::Tensor lateral, torch::Tensor weight) {
    auto y = torch::empty_like(lateral);
    int n = lateral.numel();
    upsample_add_kernel<<<(n + 255) / 256, 256>>>(
        coarse.data_ptr<float>(), lateral.data_ptr<float>(), weight.data_ptr<float>(), y.data_ptr<float>(),
        n, coarse.size(1), coarse.size(2), coarse.size(3));
    return y;
}
"""

kernels = load_inline(
    name="mini_upsample_add",
    cpp_sources="torch::Tensor upsample_add(torch::Tensor coarse, torch::Tensor lateral, torch::Tensor weight);",
    cuda_sources=cuda_source,
    functions=["upsample_add"],
)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(0.5 + torch.rand(channels, 1, 1))

    def forward(self, coarse, lateral):
        return kernels.upsample_add(coarse.contiguous(), lateral.contiguous(), self.weight)
