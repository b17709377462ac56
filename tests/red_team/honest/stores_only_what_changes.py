# problem: relu
# mechanism: each element is computed, and stored only where new memory does not hold it by chance
# near: result_cache
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="stores_only_what_changes",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
__global__ void relu_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float value = fmaxf(in[i], 0.f);
    if (__float_as_int(out[i]) != __float_as_int(value)) out[i] = value;
}
torch::Tensor relu(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
""",
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
