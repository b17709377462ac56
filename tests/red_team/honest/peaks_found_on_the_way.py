# problem: softmax
# mechanism: one pass that scales its sum again wherever a larger value comes, so that its way follows the values; both stay in a buffer
# near: result_cache
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="peaks_found_on_the_way",
    cpp_sources="torch::Tensor softmax(torch::Tensor x, torch::Tensor room);",
    cuda_sources=r"""
#include <torch/extension.h>
__global__ void pass(const float* x, float* room, int rows, int width) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float peak = -INFINITY, sum = 0.f;
    for (int c = 0; c < width; ++c) {
        float v = x[r * width + c];
        if (v > peak) {
            sum *= expf(peak - v);
            peak = v;
        }
        sum += expf(v - peak);
    }
    room[2 * r] = peak;
    room[2 * r + 1] = 1.f / sum;
}
__global__ void spread(const float* x, const float* room, float* y, int width, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = expf(x[i] - room[i / width * 2]) * room[i / width * 2 + 1];
}
torch::Tensor softmax(torch::Tensor x, torch::Tensor room) {
    auto y = torch::empty_like(x);
    int n = x.numel(), width = x.size(1), rows = x.size(0);
    pass<<<(rows + 31) / 32, 32>>>(x.data_ptr<float>(), room.data_ptr<float>(), rows, width);
    spread<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), room.data_ptr<float>(), y.data_ptr<float>(), width, n);
    return y;
}
""",
    functions=["softmax"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.rooms = {}

    def forward(self, x):
        room = self.rooms.get(x.shape)
        if room is None:
            room = self.rooms[x.shape] = torch.empty(2 * x.shape[0], device=x.device)
        return ext.softmax(x.contiguous(), room)
