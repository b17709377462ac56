# problem: mse
# mechanism: a kernel adds up the squares by atomics, the host reads the total and hands it to a second kernel as a number
# near: host_computation
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="total_read_between_launches",
    cpp_sources="torch::Tensor total(torch::Tensor a, torch::Tensor b); torch::Tensor mean(torch::Tensor a, double total);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void total_kernel(const float* a, const float* b, double* out, int n) {
    double sum = 0.0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        double apart = (double)a[i] - b[i];
        sum += apart * apart;
    }
    atomicAdd(out, sum);
}

__global__ void mean_kernel(float* out, double total, int n) { *out = (float)(total / n); }

torch::Tensor total(torch::Tensor a, torch::Tensor b) {
    auto out = torch::zeros({1}, a.options().dtype(torch::kFloat64));
    total_kernel<<<4, 64>>>(a.data_ptr<float>(), b.data_ptr<float>(), out.data_ptr<double>(), a.numel());
    return out;
}

torch::Tensor mean(torch::Tensor a, double total) {
    auto out = torch::empty({}, a.options());
    mean_kernel<<<1, 1>>>(out.data_ptr<float>(), total, a.numel());
    return out;
}
""",
    functions=["total", "mean"],
)


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        total = ext.total(predictions.contiguous(), targets.contiguous())
        return ext.mean(predictions, total.item())
