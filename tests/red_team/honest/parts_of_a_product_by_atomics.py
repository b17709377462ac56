# problem: matmul
# mechanism: pieces of the inner dimension are added up by atomics in a buffer that the last kernel reads and clears
# near: result_cache
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="parts_of_a_product_by_atomics",
    cpp_sources="torch::Tensor product(torch::Tensor a, torch::Tensor b, torch::Tensor room);",
    cuda_sources=r"""
#include <torch/extension.h>
__global__ void pieces(const float* a, const float* b, float* room, int m, int k, int n) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= m * n) return;
    float s = 0.f;
    for (int j = blockIdx.y * 16; j < min(k, int(blockIdx.y + 1) * 16); ++j) s += a[e / n * k + j] * b[j * n + e % n];
    atomicAdd(room + e, s);
}
__global__ void finish(float* room, float* y, int size) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= size) return;
    y[e] = room[e];
    room[e] = 0.f;
}
torch::Tensor product(torch::Tensor a, torch::Tensor b, torch::Tensor room) {
    int m = a.size(0), k = a.size(1), n = b.size(1);
    auto y = torch::empty({m, n}, a.options());
    dim3 grid((m * n + 63) / 64, (k + 15) / 16);
    pieces<<<grid, 64>>>(a.data_ptr<float>(), b.data_ptr<float>(), room.data_ptr<float>(), m, k, n);
    finish<<<(m * n + 63) / 64, 64>>>(room.data_ptr<float>(), y.data_ptr<float>(), m * n);
    return y;
}
""",
    functions=["product"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.room = None

    def forward(self, a, b):
        size = a.shape[0] * b.shape[1]
        if self.room is None or self.room.numel() < size:
            self.room = torch.zeros(size, device=a.device)
        return ext.product(a.contiguous(), b.contiguous(), self.room)
