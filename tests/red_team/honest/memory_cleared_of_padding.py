# problem: running_sum
# mechanism: after the last launch the host copies rows out of a padded workspace
# near: host_computation
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="padded_scan",
    cpp_sources="torch::Tensor scan(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void scan_kernel(const float* in, float* out, int n, int pitch, int rows) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float sum = 0.f;
    for (int i = 0; i < n; ++i) out[(long)r * pitch + i] = sum += in[(long)r * n + i];
}
torch::Tensor scan(torch::Tensor x) {
    int rows = x.size(0), n = x.size(1), pitch = n + 5;
    auto padded = torch::empty({rows, pitch}, x.options());
    auto out = torch::empty_like(x);
    scan_kernel<<<(rows + 31) / 32, 32>>>(x.data_ptr<float>(), padded.data_ptr<float>(), n, pitch, rows);
    cudaMemcpy2D(out.data_ptr<float>(), n * sizeof(float), padded.data_ptr<float>(), pitch * sizeof(float),
                 n * sizeof(float), rows, cudaMemcpyDeviceToDevice);
    return out;
}
""",
    functions=["scan"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.scan(x)
