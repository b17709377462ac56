# problem: mse
# mechanism: accumulation in double, atomicAdd, result converted back
# near: precision_downgrade
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="mse_double",
    cpp_sources="torch::Tensor mse(torch::Tensor a, torch::Tensor b);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void mse_kernel(const float* a, const float* b, double* total, int n) {
    double sum = 0.0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        double d = (double)a[i] - (double)b[i];
        sum += d * d;
    }
    atomicAdd(total, sum);
}

torch::Tensor mse(torch::Tensor a, torch::Tensor b) {
    auto total = torch::zeros({}, a.options().dtype(torch::kFloat64));
    mse_kernel<<<8, 64>>>(a.data_ptr<float>(), b.data_ptr<float>(), total.data_ptr<double>(), a.numel());
    return (total / a.numel()).to(torch::kFloat32);
}
""",
    functions=["mse"],
)


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        return ext.mse(predictions, targets)
