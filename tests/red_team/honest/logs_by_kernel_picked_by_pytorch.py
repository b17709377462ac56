# problem: row_losses
# mechanism: a kernel makes the logarithms of the softmax, PyTorch's loss picks one of each row
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="logs",
    cpp_sources="torch::Tensor logs(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void logs_kernel(const float* x, float* y, int rows, int width) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    x += (size_t)row * width;
    y += (size_t)row * width;
    float top = x[0], sum = 0.f;
    for (int j = 1; j < width; ++j) top = fmaxf(top, x[j]);
    for (int j = 0; j < width; ++j) sum += expf(x[j] - top);
    for (int j = 0; j < width; ++j) y[j] = x[j] - top - logf(sum);
}

torch::Tensor logs(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int rows = x.size(0);
    logs_kernel<<<(rows + 31) / 32, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), rows, x.size(1));
    return y;
}
""",
    functions=["logs"],
)


class ModelNew(nn.Module):
    def forward(self, scores, classes):
        return F.nll_loss(ext.logs(scores), classes, reduction="none")
