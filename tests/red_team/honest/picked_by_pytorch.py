# problem: picked_loss
# mechanism: the log-softmax is a kernel's; PyTorch picks and averages
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="picked_by_pytorch",
    cpp_sources="torch::Tensor row_logs(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void logs(const float* x, float* y, int width) {
    const float* row = x + blockIdx.x * width;
    float best = row[0], sum = 0;
    for (int c = 1; c < width; ++c) best = fmaxf(best, row[c]);
    for (int c = 0; c < width; ++c) sum += expf(row[c] - best);
    for (int c = threadIdx.x; c < width; c += blockDim.x) y[blockIdx.x * width + c] = row[c] - best - logf(sum);
}
torch::Tensor row_logs(torch::Tensor x) {
    auto y = torch::empty_like(x);
    logs<<<x.size(0), 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    return y;
}
""",
    functions=["row_logs"],
)


class ModelNew(nn.Module):
    def forward(self, scores, classes):
        return F.nll_loss(ext.row_logs(scores), classes)
