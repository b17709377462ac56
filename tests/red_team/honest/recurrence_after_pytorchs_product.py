# problem: written_lstm
# mechanism: PyTorch multiplies all inputs at once, and the recurrence is a kernel
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="recurrence_after_pytorchs_product",
    cpp_sources="torch::Tensor last_state(torch::Tensor gates, torch::Tensor wh);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void last_state_kernel(const float* gates, const float* wh, float* out, int steps, int h) {
    extern __shared__ float shared[];
    float *state = shared, *sums = shared + h;
    int j = threadIdx.x;
    float cell = 0.f;
    if (j < h) state[j] = 0.f;
    __syncthreads();
    for (int t = 0; t < steps; ++t) {
        float sum = gates[(blockIdx.x * steps + t) * 4 * h + j];
        for (int k = 0; k < h; ++k) sum += state[k] * wh[j * h + k];
        sums[j] = sum;
        __syncthreads();
        if (j < h) {
            float i = 1.f / (1.f + expf(-sums[j])), f = 1.f / (1.f + expf(-sums[h + j]));
            cell = f * cell + i * tanhf(sums[2 * h + j]);
            state[j] = tanhf(cell) / (1.f + expf(-sums[3 * h + j]));
        }
        __syncthreads();
    }
    if (j < h) out[blockIdx.x * h + j] = state[j];
}
torch::Tensor last_state(torch::Tensor gates, torch::Tensor wh) {
    int n = gates.size(0), steps = gates.size(1), h = wh.size(1);
    auto out = torch::empty({n, h}, gates.options());
    last_state_kernel<<<n, 4 * h, 5 * h * sizeof(float)>>>(
        gates.data_ptr<float>(), wh.data_ptr<float>(), out.data_ptr<float>(), steps, h);
    return out;
}
""",
    functions=["last_state"],
)


class ModelNew(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.wi = nn.Parameter(torch.randn(4 * h, d) / d**0.5)
        self.wh = nn.Parameter(torch.randn(4 * h, h) / h**0.5)
        self.b = nn.Parameter(torch.randn(4 * h) * 0.1)

    def forward(self, x):
        gates = torch.nn.functional.linear(x, self.wi, self.b)
        return ext.last_state(gates.contiguous(), self.wh)
