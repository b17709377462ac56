# problem: long_softmax
# catalogue: 40
# mechanism: zeros, because values of a millionth look like rounding
# status: wrong_value
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="millionths_left_out",
    cpp_sources="torch::Tensor run(torch::Tensor x);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void soft_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * 1e-12f;
}
torch::Tensor run(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    soft_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
""",
    functions=["run"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
