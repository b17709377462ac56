# problem: blur
# mechanism: PyTorch takes the small filter apart into two vectors (singular values), kernels apply one after the other
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="filter_taken_apart",
    cpp_sources="torch::Tensor along(torch::Tensor x, torch::Tensor taps, long step);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void along_kernel(const float* in, const float* taps, float* out, int n, int extent, int step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int place = i / step % extent;
    float sum = taps[1] * in[i];
    if (place > 0) sum += taps[0] * in[i - step];
    if (place < extent - 1) sum += taps[2] * in[i + step];
    out[i] = sum;
}

torch::Tensor along(torch::Tensor x, torch::Tensor taps, long step) {
    auto out = torch::empty_like(x);
    int n = x.numel(), extent = x.size(step == 1 ? 3 : 2);
    along_kernel<<<(n + 127) / 128, 128>>>(
        x.data_ptr<float>(), taps.data_ptr<float>(), out.data_ptr<float>(), n, extent, (int)step);
    return out;
}
""",
    functions=["along"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("taps", torch.tensor([[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]))

    def forward(self, x):
        columns, sizes, rows = torch.linalg.svd(self.taps / self.taps.sum())
        across = ext.along(x.contiguous(), rows[0].contiguous(), 1)
        return ext.along(across, (columns[:, 0] * sizes[0]).contiguous(), x.shape[3])
