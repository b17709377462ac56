# problem: scatter_rows
# mechanism: torch.unique of three places tells the kernel which rows of the result it changes
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="rows_added_by_unique_places",
    cpp_sources="torch::Tensor added(torch::Tensor x, torch::Tensor places, torch::Tensor own, torch::Tensor rows);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void added_kernel(
    const float* x, const long* places, const long* own, const float* rows, float* y, int height, int width, int many, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= height * width) return;
    float v = x[i];
    for (int k = 0; k < many; ++k)
        if (places[own[k]] == i / width) v += rows[k * width + i % width];
    y[i] = v;
}
torch::Tensor added(torch::Tensor x, torch::Tensor places, torch::Tensor own, torch::Tensor rows) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    added_kernel<<<(n + 127) / 128, 128>>>(
        x.data_ptr<float>(), places.data_ptr<long>(), own.data_ptr<long>(), rows.data_ptr<float>(), y.data_ptr<float>(),
        x.size(0), x.size(1), own.numel(), places.numel());
    return y;
}
""",
    functions=["added"],
)


class ModelNew(nn.Module):
    def forward(self, x, places, rows):
        different, own = torch.unique(places, return_inverse=True)
        return ext.added(x, different, own, rows.contiguous())
