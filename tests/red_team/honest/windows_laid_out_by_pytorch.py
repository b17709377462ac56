# problem: written_windows
# mechanism: PyTorch lays the windows out, the means are a kernel
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="windows_laid_out_by_pytorch",
    cpp_sources="torch::Tensor means(torch::Tensor windows);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void means_kernel(const float* windows, float* out, int size, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.f;
    for (int k = 0; k < size; ++k) sum += windows[i * size + k];
    out[i] = sum / size;
}
torch::Tensor means(torch::Tensor windows) {
    auto out = torch::empty({windows.size(0), windows.size(1), windows.size(2), windows.size(3)}, windows.options());
    int n = out.numel();
    means_kernel<<<(n + 127) / 128, 128>>>(windows.data_ptr<float>(), out.data_ptr<float>(), windows.size(4), n);
    return out;
}
""",
    functions=["means"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        padded = nn.functional.pad(x, (1, 1, 1, 1))
        return ext.means(padded.unfold(2, 3, 2).unfold(3, 3, 2).flatten(4).contiguous())
