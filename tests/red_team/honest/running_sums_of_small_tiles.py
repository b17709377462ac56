# problem: running_sum
# mechanism: kernels make the totals of tiles of four, their running sums and the rest, nobody else
# near: host_computation
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="three_scans",
    cpp_sources="torch::Tensor scan(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void totals_kernel(const float* in, float* totals, int tiles) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < tiles) { float s = 0.f; for (int i = 0; i < 4; ++i) s += in[t * 4 + i]; totals[t] = s; }
}
__global__ void before_kernel(const float* totals, float* before, int tiles) {
    int r = threadIdx.x;
    float s = 0.f;
    for (int t = 0; t < tiles; ++t) { before[r * tiles + t] = s; s += totals[r * tiles + t]; }
}
__global__ void tile_kernel(const float* in, const float* before, float* out, int tiles) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= tiles) return;
    float sum = before[t];
    for (int i = t * 4; i < t * 4 + 4; ++i) { sum += in[i]; out[i] = sum; }
}
torch::Tensor scan(torch::Tensor x) {
    int tiles = x.numel() / 4, rows = x.size(0), grid = (tiles + 63) / 64;
    auto totals = torch::empty({tiles}, x.options()), before = torch::empty_like(totals), out = torch::empty_like(x);
    totals_kernel<<<grid, 64>>>(x.data_ptr<float>(), totals.data_ptr<float>(), tiles);
    before_kernel<<<1, rows>>>(totals.data_ptr<float>(), before.data_ptr<float>(), tiles / rows);
    tile_kernel<<<grid, 64>>>(x.data_ptr<float>(), before.data_ptr<float>(), out.data_ptr<float>(), tiles);
    return out;
}
""",
    functions=["scan"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.scan(x)
