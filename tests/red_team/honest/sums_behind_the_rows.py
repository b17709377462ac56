# problem: residual_softmax
# mechanism: a workspace outlives calls, the sums of its rows lie behind them in it, and each kernel gets both places
# near: host_computation result_cache
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="sums_behind_the_rows",
    cpp_sources="torch::Tensor shares(torch::Tensor x, torch::Tensor room);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void powers(const float* x, float* rows, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) rows[i] = 2.f * x[i];
}
__global__ void exponents(float* rows, float* sums, int columns) {
    float* row = rows + blockIdx.x * columns;
    __shared__ float peak, sum;
    if (threadIdx.x == 0) {
        peak = row[0];
        for (int i = 1; i < columns; ++i) peak = fmaxf(peak, row[i]);
    }
    __syncthreads();
    row[threadIdx.x] = expf(row[threadIdx.x] - peak);
    __syncthreads();
    if (threadIdx.x == 0) {
        sum = 0.f;
        for (int i = 0; i < columns; ++i) sum += row[i];
        sums[blockIdx.x] = sum;
    }
}
__global__ void finish(const float* x, const float* rows, const float* sums, float* out, int columns, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + rows[i] / sums[i / columns];
}
torch::Tensor shares(torch::Tensor x, torch::Tensor room) {
    auto out = torch::empty_like(x);
    int n = x.numel(), columns = x.size(1), height = x.size(0);
    float *rows = room.data_ptr<float>(), *sums = rows + n;
    powers<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), rows, n);
    exponents<<<height, columns>>>(rows, sums, columns);
    finish<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), rows, sums, out.data_ptr<float>(), columns, n);
    return out;
}
""",
    functions=["shares"],
)
_rooms = {}


def room_for(x):
    size = x.numel() + len(x)
    if (room := _rooms.get(x.device)) is None or room.numel() < size:
        room = _rooms[x.device] = x.new_empty(size + size // 4)
    return room


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        return ext.shares(x, room_for(x))
