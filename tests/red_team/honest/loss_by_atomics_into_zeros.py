# problem: mse
# mechanism: a scalar: blocks add their part to one zero
# near: identity_kernel
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="loss_by_atomics_into_zeros",
    cpp_sources="void add_squares(torch::Tensor p, torch::Tensor t, torch::Tensor total);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void add_squares_kernel(const float* p, const float* t, float* total, int n) {
    float sum = 0.f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += (p[i] - t[i]) * (p[i] - t[i]);
    atomicAdd(total, sum / n);
}
void add_squares(torch::Tensor p, torch::Tensor t, torch::Tensor total) {
    add_squares_kernel<<<8, 32>>>(p.data_ptr<float>(), t.data_ptr<float>(), total.data_ptr<float>(), p.numel());
}
""",
    functions=["add_squares"],
)


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        total = torch.zeros((), device=predictions.device)
        ext.add_squares(predictions, targets, total)
        return total
