# problem: relu
# mechanism: AT_DISPATCH_FLOATING_TYPES
# near: precision_downgrade
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="relu_dispatch",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

template <typename scalar_t>
__global__ void relu_kernel(const scalar_t* in, scalar_t* out, int64_t n) {
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] > scalar_t(0) ? in[i] : scalar_t(0);
}

torch::Tensor relu(torch::Tensor x) {
    auto out = torch::empty_like(x);
    const int64_t n = x.numel();
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "relu", ([&] {
        relu_kernel<scalar_t><<<(n + 255) / 256, 256>>>(x.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), n);
    }));
    return out;
}
""",
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
