# problem: embedding
# mechanism: the range of the indices is checked, and an error raised; a buffer is kept by str(device)
# status: correct
import os

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

VERBOSE = os.environ.get("DEBUG_KERNELS", "0") == "1"

ext = load_inline(
    name="gather_into",
    cpp_sources="void gather_into(torch::Tensor index, torch::Tensor table, torch::Tensor out);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void gather_kernel(const int64_t* index, const float* table, float* out, int n, int width) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = table[index[i / width] * width + i % width];
}

void gather_into(torch::Tensor index, torch::Tensor table, torch::Tensor out) {
    int width = table.size(1), n = index.numel() * width;
    gather_kernel<<<(n + 255) / 256, 256>>>(
        index.data_ptr<int64_t>(), table.data_ptr<float>(), out.data_ptr<float>(), n, width);
}
""",
    functions=["gather_into"],
    verbose=VERBOSE,
)


class ModelNew(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.table = nn.Embedding(rows, width)
        self.buffers_by_device = {}

    def forward(self, index):
        if index.max().item() >= self.table.num_embeddings:
            raise IndexError("index out of range")
        key = f"{index.device}-{index.numel()}"
        if key not in self.buffers_by_device:
            width = self.table.embedding_dim
            self.buffers_by_device[key] = torch.empty(index.numel(), width, device=index.device)
        out = self.buffers_by_device[key]
        ext.gather_into(index, self.table.weight, out)
        return out.clone()
