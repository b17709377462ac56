"""One block a token; the summed row is kept in dynamic shared memory."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__device__ __forceinline__ float block_sum(float v, float* partial) {
    for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_xor_sync(0xffffffff, v, offset);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0.0f;
    for (int w = 0; w < blockDim.x / 32; ++w) v += partial[w];
    __syncthreads();
    return v;
}

__global__ void embedding_norm_kernel(const int64_t* tokens, const float* token_table, const float* position_table,
                                      const float* weight, const float* bias, float* y,
                                      int length, int features, float eps) {
    extern __shared__ float row[];
    __shared__ float partial[32];
    const float* word = token_table + tokens[blockIdx.x] * features;
    const float* place = position_table + (size_t)(blockIdx.x % length) * features;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < features; i += blockDim.x) {
        row[i] = word[i] + place[i];
        sum += row[i];
    }
    float mean = block_sum(sum, partial) / features;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < features; i += blockDim.x) squares += (row[i] - mean) * (row[i] - mean);
    float scale = rsqrtf(block_sum(squares, partial) / features + eps);
    float* out = y + (size_t)blockIdx.x * features;
    for (int i = threadIdx.x; i < features; i += blockDim.x) out[i] = (row[i] - mean) * scale * weight[i] + bias[i];
}

torch::Tensor embedding_norm(torch::Tensor tokens, torch::Tensor token_table, torch::Tensor position_table,
                             torch::Tensor weight, torch::Tensor bias, double eps) {
    int length = tokens.size(1), features = token_table.size(1);
    auto y = torch::empty({tokens.size(0), length, features}, token_table.options());
    embedding_norm_kernel<<<tokens.numel(), 128, features * sizeof(float)>>>(
        tokens.data_ptr<int64_t>(), token_table.data_ptr<float>(), position_table.data_ptr<float>(),
        weight.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(), length, features, eps);
    return y;
}
"""

cpp_source = """
torch::Tensor embedding_norm(torch::Tensor tokens, torch::Tensor token_table, torch::Tensor position_table,
                             torch::Tensor weight, torch::Tensor bias, double eps);
"""

kernels = load_inline(
    name="mini_embedding_norm", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["embedding_norm"]
)


class ModelNew(nn.Module):
    def __init__(self, vocabulary, length, features):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, features)
        self.positions = nn.Embedding(length, features)
        self.norm = nn.LayerNorm(features)
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.3)
        nn.init.normal_(self.norm.bias, std=0.3)

    def forward(self, tokens):
        norm = self.norm
        return kernels.embedding_norm(
            tokens.contiguous(), self.tokens.weight, self.positions.weight, norm.weight, norm.bias, norm.eps
        )
