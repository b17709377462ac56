# problem: given_causal
# mechanism: a row of the mask that is a beginning of ones is read as such, by each thread for its own row
# near: assumed_constant
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="triangle_by_every_row",
    cpp_sources="torch::Tensor masked(torch::Tensor s, torch::Tensor m);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void rows(const float* s, const float* m, float* y, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n) return;
    bool triangle = true;
    for (int c = 0; c < n; ++c) triangle = triangle && (m[r * n + c] != 0.0f) == (c <= r);
    float top = -3e38f, sum = 0.0f;
    for (int c = 0; c < n; ++c) if (triangle ? c <= r : m[r * n + c] != 0.0f) top = fmaxf(top, s[r * n + c]);
    for (int c = 0; c < n; ++c) if (triangle ? c <= r : m[r * n + c] != 0.0f) sum += expf(s[r * n + c] - top);
    for (int c = 0; c < n; ++c)
        y[r * n + c] = (triangle ? c <= r : m[r * n + c] != 0.0f) ? expf(s[r * n + c] - top) / sum : 0.0f;
}
torch::Tensor masked(torch::Tensor s, torch::Tensor m) {
    auto y = torch::empty_like(s);
    int n = s.size(0);
    rows<<<(n + 31) / 32, 32>>>(s.data_ptr<float>(), m.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
""",
    functions=["masked"],
)


class ModelNew(nn.Module):
    def forward(self, scores, mask):
        return ext.masked(scores, mask)
