# problem: row_sum
# mechanism: an object of C++ keeps room in which each call leaves its sums, and copies them out
# near: result_cache stale_output
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="sums_in_kept_room",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <memory>
__global__ void add_up(const float* in, float* sums, int width) {
    __shared__ float parts[64];
    int t = threadIdx.x;
    const float* row = in + (long long)blockIdx.x * width;
    float sum = 0.f;
    for (int j = t; j < width; j += blockDim.x) sum += row[j];
    parts[t] = sum;
    __syncthreads();
    if (t == 0) {
        for (int k = 1; k < blockDim.x; ++k) sum += parts[k];
        sums[blockIdx.x] = sum;
    }
}
__global__ void hand_out(const float* sums, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = sums[i];
}
struct Room { torch::Tensor sums; };
static std::unique_ptr<Room> room;
torch::Tensor row_sum(torch::Tensor x) {
    int width = x.size(-1);
    auto shape = x.sizes().vec();
    shape.pop_back();
    if (!room || room->sums.sizes().vec() != shape) room.reset(new Room{torch::empty(shape, x.options())});
    auto out = torch::empty(shape, x.options());
    int n = out.numel();
    add_up<<<n, 64>>>(x.data_ptr<float>(), room->sums.data_ptr<float>(), width);
    hand_out<<<(n + 255) / 256, 256>>>(room->sums.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
""",
    functions=["row_sum"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.row_sum(x.contiguous())
