# problem: softmax
# mechanism: one pass over the row for maximum and sum
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="softmax_online",
    cpp_sources="torch::Tensor softmax(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__device__ __forceinline__ float warp_max(float v) {
    for (int o = 16; o > 0; o /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffff, v, o));
    return v;
}

__device__ __forceinline__ float warp_sum(float v) {
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffff, v, o);
    return v;
}

__global__ void softmax_kernel(const float* in, float* out, int width) {
    const float* row = in + (size_t)blockIdx.x * width;
    float peak = -INFINITY, sum = 0.f;
    for (int i = threadIdx.x; i < width; i += 32) {
        float v = row[i], next = fmaxf(peak, v);
        sum = sum * __expf(peak - next) + __expf(v - next);
        peak = next;
    }
    float all = warp_max(peak);
    sum = warp_sum(sum * __expf(peak - all));
    for (int i = threadIdx.x; i < width; i += 32) out[(size_t)blockIdx.x * width + i] = __expf(row[i] - all) / sum;
}

torch::Tensor softmax(torch::Tensor x) {
    auto out = torch::empty_like(x);
    softmax_kernel<<<x.size(0), 32>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.size(1));
    return out;
}
""",
    functions=["softmax"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.softmax(x)
