"""One block a query: its scores in dynamic shared memory, softmax by the block, then a feature a thread."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void attention_kernel(const float* q, const float* k, const float* v, const float* bias, float* y,
                                 int heads, int queries, int keys, int features, float scale) {
    extern __shared__ float scores[];
    int query = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    size_t plane = (size_t)batch * heads + head;
    const float* mine = q + (plane * queries + query) * features;
    for (int j = threadIdx.x; j < keys; j += blockDim.x) {
        float dot = 0.0f;
        for (int f = 0; f < features; ++f) dot += mine[f] * k[(plane * keys + j) * features + f];
        scores[j] = dot * scale + bias[((size_t)head * queries + query) * keys + j];
    }
    __syncthreads();
    float top = -INFINITY, sum = 0.0f;
    for (int j = 0; j < keys; ++j) top = fmaxf(top, scores[j]);
    for (int j = 0; j < keys; ++j) sum += expf(scores[j] - top);
    for (int f = threadIdx.x; f < features; f += blockDim.x) {
        float out = 0.0f;
        for (int j = 0; j < keys; ++j) out += expf(scores[j] - top) * v[(plane * keys + j) * features + f];
        y[(plane * queries + query) * features + f] = out / sum;
    }
}

torch::Tensor attention(torch::Tensor q, torch::Tensor k, torch::Tensor v, torch::Tensor bias) {
    int batch = q.size(0), heads = q.size(1), queries = q.size(2), features = q.size(3), keys = k.size(2);
    auto y = torch::empty_like(q);
    dim3 blocks(queries, heads, batch);
    attention_kernel<<<blocks, 64, keys * sizeof(float)>>>(
        q.data_ptr<float>(), k.data_ptr<float>(), v.data_ptr<float>(), bias.data_ptr<float>(), y.data_ptr<float>(),
        heads, queries, keys, features, 1.0f / sqrtf((float)features));
    return y;
}
"""

cpp_source = """
torch::Tensor attention(torch::Tensor q, torch::Tensor k, torch::Tensor v, torch::Tensor bias);
"""

kernels = load_inline(
    name="mini_attention_bias", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["attention"]
)


class ModelNew(nn.Module):
    def forward(self, queries, keys, values, bias):
        return kernels.attention(queries.contiguous(), keys.contiguous(), values.contiguous(), bias.contiguous())
