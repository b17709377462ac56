# problem: row_sum
# mechanism: a workspace is marked with the number of the call, so that it need not be cleared between calls
# near: call_counting
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="epoch_of_a_workspace",
    cpp_sources="torch::Tensor sums(torch::Tensor x, torch::Tensor marks, long epoch);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void halves_kernel(const float* x, float* halves, int* marks, int w, int epoch) {
    const int row = blockIdx.x, half = blockIdx.y, middle = w / 2;
    if (threadIdx.x != 0) return;
    float sum = 0.f;
    for (int j = half ? middle : 0; j < (half ? w : middle); ++j) sum += x[row * w + j];
    halves[2 * row + half] = sum;
    marks[2 * row + half] = epoch;
}
__global__ void join_kernel(const float* halves, const int* marks, float* y, int epoch, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    y[row] = 0.f;
    for (int half = 0; half < 2; ++half)
        if (marks[2 * row + half] == epoch) y[row] += halves[2 * row + half];
}
torch::Tensor sums(torch::Tensor x, torch::Tensor marks, long epoch) {
    const int rows = x.size(0), w = x.size(1);
    auto y = torch::empty({rows}, x.options()), halves = torch::empty({rows, 2}, x.options());
    halves_kernel<<<dim3(rows, 2), 32>>>(x.data_ptr<float>(), halves.data_ptr<float>(), marks.data_ptr<int>(), w, (int)epoch);
    join_kernel<<<(rows + 63) / 64, 64>>>(halves.data_ptr<float>(), marks.data_ptr<int>(), y.data_ptr<float>(), (int)epoch, rows);
    return y;
}
""",
    functions=["sums"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.epoch, self.marks = 0, None

    def forward(self, x):
        self.epoch += 1
        if self.marks is None or self.marks.numel() != 2 * x.shape[0]:
            self.marks = torch.zeros(2 * x.shape[0], dtype=torch.int32, device=x.device)
        return ext.sums(x, self.marks, self.epoch)
