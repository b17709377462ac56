# problem: relu
# mechanism: __host__ __device__ helpers, a struct passed by value, a namespace
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="relu_helpers",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

namespace activation {

struct Limits {
    float low;
    float high;
};

__host__ __device__ inline float clip(float v, Limits limits) {
    return v < limits.low ? limits.low : (v > limits.high ? limits.high : v);
}

__global__ void clip_kernel(const float* in, float* out, int n, Limits limits) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = clip(in[i], limits);
}

}  // namespace activation

torch::Tensor relu(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    activation::Limits limits{0.f, 3.0e38f};
    activation::clip_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n, limits);
    return out;
}
""",
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
