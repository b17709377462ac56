"""One block a token; the threads copy its row."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void embedding_kernel(const int64_t* tokens, const float* table, float* y, int features) {
    const float* row = table + tokens[blockIdx.x] * features;
    for (int i = threadIdx.x; i < features; i += blockDim.x) y[(size_t)blockIdx.x * features + i] = row[i];
}

torch::Tensor embedding(torch::Tensor tokens, torch::Tensor table) {
    int features = table.size(1);
    auto y = torch::empty({tokens.size(0), tokens.size(1), features}, table.options());
    embedding_kernel<<<tokens.numel(), 128>>>(
        tokens.data_ptr<int64_t>(), table.data_ptr<float>(), y.data_ptr<float>(), features);
    return y;
}
"""

kernels = load_inline(
    name="mini_embedding",
    cpp_sources="torch::Tensor embedding(torch::Tensor tokens, torch::Tensor table);",
    cuda_sources=cuda_source,
    functions=["embedding"],
)


class ModelNew(nn.Module):
    def __init__(self, vocabulary, features):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, features)

    def forward(self, tokens):
        return kernels.embedding(tokens.contiguous(), self.embedding.weight)
