# problem: written_cross_entropy
# mechanism: a kernel takes from each row the logarithm of its sum, a shift for each row; PyTorch's loss picks and adds up
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="logs_of_shares_by_kernel_picked_by_a_loss",
    cpp_sources="torch::Tensor log_shares(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void log_shares_kernel(const float* x, float* y, int width) {
    const float* row = x + blockIdx.x * width;
    float top = row[0], sum = 0.f;
    for (int k = 1; k < width; ++k) top = fmaxf(top, row[k]);
    for (int k = 0; k < width; ++k) sum += expf(row[k] - top);
    int i = blockIdx.x * width + threadIdx.x;
    y[i] = x[i] - top - logf(sum);
}
torch::Tensor log_shares(torch::Tensor x) {
    auto y = torch::empty_like(x);
    log_shares_kernel<<<x.size(0), x.size(1)>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    return y;
}
""",
    functions=["log_shares"],
)


class ModelNew(nn.Module):
    def forward(self, scores, classes):
        return nn.functional.nll_loss(ext.log_shares(scores), classes)
