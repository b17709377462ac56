# problem: relu
# mechanism: python scalars, a bool and an optional tensor among the arguments
# near: constant_output
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="leaky",
    cpp_sources="torch::Tensor leaky(torch::Tensor x, double slope, bool keep, std::optional<torch::Tensor> offset);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <optional>

__global__ void leaky_kernel(const float* in, const float* offset, float* out, float slope, bool keep, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = in[i] + (offset != nullptr ? offset[i] : 0.f);
    out[i] = v > 0.f && keep ? v : slope * v;
}

torch::Tensor leaky(torch::Tensor x, double slope, bool keep, std::optional<torch::Tensor> offset) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    const float* shift = offset.has_value() ? offset->data_ptr<float>() : nullptr;
    leaky_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), shift, out.data_ptr<float>(), (float)slope, keep, n);
    return out;
}
""",
    functions=["leaky"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.leaky(x, 0.0, True, None)
