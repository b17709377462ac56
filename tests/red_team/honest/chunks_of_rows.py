# problem: softmax
# mechanism: rows in chunks of five through one small workspace, by two kernels for each
# near: host_computation
# status: correct
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void stats(const float* x, float* work, int w) {
    float m = -3e38f, s = 0;
    for (int c = 0; c < w; ++c) { float v = x[blockIdx.x * w + c]; if (v > m) { s = s * expf(m - v) + 1; m = v; } else s += expf(v - m); }
    work[blockIdx.x * 2] = m; work[blockIdx.x * 2 + 1] = s;
}
__global__ void write(const float* x, const float* work, float* y, int w) {
    for (int c = threadIdx.x; c < w; c += blockDim.x) y[blockIdx.x * w + c] = expf(x[blockIdx.x * w + c] - work[blockIdx.x * 2]) / work[blockIdx.x * 2 + 1];
}
void f(torch::Tensor x, torch::Tensor y, torch::Tensor work) {
    stats<<<x.size(0), 1>>>(x.data_ptr<float>(), work.data_ptr<float>(), x.size(1));
    write<<<x.size(0), 64>>>(x.data_ptr<float>(), work.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
}
"""
ext = load_inline(
    name="chunks_of_rows",
    cpp_sources="void f(torch::Tensor x, torch::Tensor y, torch::Tensor work);",
    cuda_sources=SOURCE,
    functions=["f"],
)


class ModelNew(nn.Module):
    CHUNK = 5

    def forward(self, x):
        y = torch.empty_like(x)
        work = x.new_empty(self.CHUNK, 2)
        for start in range(0, x.shape[0], self.CHUNK):
            ext.f(x[start : start + self.CHUNK], y[start : start + self.CHUNK], work)
        return y
