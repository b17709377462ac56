# problem: plane_mean
# mechanism: blocks take tickets of a counter in device memory that nobody sets back; the last of each call adds the parts up
# near: call_counting unstable_output
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="tickets_never_taken_back",
    cpp_sources="void means(torch::Tensor x, torch::Tensor y, torch::Tensor parts, torch::Tensor tickets);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#define PARTS 4

__global__ void means_kernel(const float* x, float* y, float* parts, unsigned* tickets, int size) {
    const int plane = blockIdx.y, part = blockIdx.x;
    if (threadIdx.x != 0) return;
    float sum = 0.f;
    for (int i = part; i < size; i += PARTS) sum += x[plane * size + i];
    parts[plane * PARTS + part] = sum;
    __threadfence();
    if (atomicAdd(tickets + plane, 1u) % PARTS == PARTS - 1) {
        float total = 0.f;
        for (int p = 0; p < PARTS; ++p) total += ((volatile float*)parts)[plane * PARTS + p];
        y[plane] = total / size;
    }
}

void means(torch::Tensor x, torch::Tensor y, torch::Tensor parts, torch::Tensor tickets) {
    const int planes = y.numel();
    means_kernel<<<dim3(PARTS, planes), 32>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), parts.data_ptr<float>(), (unsigned*)tickets.data_ptr<int>(), x.numel() / planes);
}
""",
    functions=["means"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.tickets = None

    def forward(self, x):
        y = torch.empty(x.shape[:2], device=x.device)
        if self.tickets is None or self.tickets.numel() != y.numel():
            self.tickets = torch.zeros(y.numel(), dtype=torch.int32, device=x.device)
        parts = torch.empty(4 * y.numel(), device=x.device)
        ext.means(x, y, parts, self.tickets)
        return y
