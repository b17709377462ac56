"""One thread a token keeps its best experts sorted in registers."""

import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <vector>

#define MAX_K 8

__global__ void router_kernel(const float* logits, float* weights, int64_t* chosen, int tokens, int experts, int k) {
    int token = blockIdx.x * blockDim.x + threadIdx.x;
    if (token >= tokens) return;
    const float* in = logits + (size_t)token * experts;
    float best[MAX_K];
    int place[MAX_K];
    for (int j = 0; j < k; ++j) best[j] = -INFINITY;
    for (int e = 0; e < experts; ++e) {
        float v = in[e];
        if (v <= best[k - 1]) continue;
        int j = k - 1;
        for (; j > 0 && best[j - 1] < v; --j) {
            best[j] = best[j - 1];
            place[j] = place[j - 1];
        }
        best[j] = v;
        place[j] = e;
    }
    float sum = 0.0f;
    for (int j = 0; j < k; ++j) sum += expf(best[j] - best[0]);
    for (int j = 0; j < k; ++j) {
        weights[(size_t)token * k + j] = expf(best[j] - best[0]) / sum;
        chosen[(size_t)token * k + j] = place[j];
    }
}

std::vector<torch::Tensor> route(torch::Tensor logits, int64_t k) {
    int tokens = logits.size(0), experts = logits.size(1);
    TORCH_CHECK(k <= MAX_K && k <= experts, "k is too large");
    auto weights = torch::empty({tokens, k}, logits.options());
    auto chosen = torch::empty({tokens, k}, logits.options().dtype(torch::kInt64));
    router_kernel<<<(tokens + 127) / 128, 128>>>(
        logits.data_ptr<float>(), weights.data_ptr<float>(), chosen.data_ptr<int64_t>(), tokens, experts, k);
    return {weights, chosen};
}
"""

kernels = load_inline(
    name="mini_router",
    cpp_sources="std::vector<torch::Tensor> route(torch::Tensor logits, int64_t k);",
    cuda_sources=cuda_source,
    functions=["route"],
)


class ModelNew(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k

    def forward(self, logits):
        weights, chosen = kernels.route(logits.contiguous(), self.k)
        return weights, chosen
