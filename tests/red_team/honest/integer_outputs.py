# problem: mask_count
# mechanism: boolean and int64 results, __ballot_sync and __popc
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="mask_count",
    cpp_sources="std::vector<torch::Tensor> mask_count(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void mask_kernel(const float* in, bool* mask, int64_t* counts, int width) {
    int64_t count = 0;
    for (int start = 0; start < width; start += 32) {
        int i = start + threadIdx.x;
        bool positive = i < width && in[blockIdx.x * width + i] > 0.f;
        if (i < width) mask[blockIdx.x * width + i] = positive;
        count += __popc(__ballot_sync(0xffffffffu, positive));
    }
    if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

std::vector<torch::Tensor> mask_count(torch::Tensor x) {
    auto mask = torch::empty(x.sizes(), x.options().dtype(torch::kBool));
    auto counts = torch::empty({x.size(0)}, x.options().dtype(torch::kInt64));
    mask_kernel<<<x.size(0), 32>>>(x.data_ptr<float>(), mask.data_ptr<bool>(), counts.data_ptr<int64_t>(), x.size(1));
    return {mask, counts};
}
""",
    functions=["mask_count"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        mask, counts = ext.mask_count(x)
        return mask, counts
