# problem: written_upsampling
# mechanism: PyTorch interpolates along one direction, a kernel along the other
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="widened_by_pytorch_heightened_by_kernel",
    cpp_sources="torch::Tensor taller(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void taller_kernel(const float* x, float* y, int height, int width, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int column = i % width, row = i / width % (2 * height), plane = i / width / (2 * height);
    int near = row / 2, far = min(max(row % 2 ? near + 1 : near - 1, 0), height - 1);
    const float* from = x + plane * height * width + column;
    y[i] = 0.75f * from[near * width] + 0.25f * from[far * width];
}
torch::Tensor taller(torch::Tensor x) {
    auto y = torch::empty({x.size(0), x.size(1), 2 * x.size(2), x.size(3)}, x.options());
    int n = y.numel();
    taller_kernel<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(2), x.size(3), n);
    return y;
}
""",
    functions=["taller"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.taller(nn.functional.interpolate(x, scale_factor=(1, 2), mode="bilinear"))
