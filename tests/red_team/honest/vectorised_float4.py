# problem: relu
# mechanism: float4 loads through reinterpret_cast, and an alignment test of the address
# near: identity_kernel result_cache
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="relu_vec4",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <cstdint>

__global__ void relu4_kernel(const float4* in, float4* out, int n4) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n4) {
        float4 v = in[i];
        v.x = fmaxf(v.x, 0.f);
        v.y = fmaxf(v.y, 0.f);
        v.z = fmaxf(v.z, 0.f);
        v.w = fmaxf(v.w, 0.f);
        out[i] = v;
    }
}

torch::Tensor relu(torch::Tensor x) {
    auto out = torch::empty_like(x);
    const float* address = x.data_ptr<float>();
    bool aligned = reinterpret_cast<uintptr_t>(address) % 16 == 0;
    TORCH_CHECK(aligned && x.numel() % 4 == 0, "four elements at a time");
    int n4 = x.numel() / 4;
    relu4_kernel<<<(n4 + 127) / 128, 128>>>(
        reinterpret_cast<const float4*>(address), reinterpret_cast<float4*>(out.data_ptr<float>()), n4);
    return out;
}
""",
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
