# problem: relu
# mechanism: two extensions are built by threads of a pool that is shut down before the model is used
# near: background_thread
# status: correct
from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

BODY = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void NAME_kernel(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = STEP;
}

torch::Tensor NAME(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    NAME_kernel<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""


def build(name, step):
    return load_inline(
        name=name,
        cpp_sources=f"torch::Tensor {name}(torch::Tensor x);",
        cuda_sources=BODY.replace("NAME", name).replace("STEP", step),
        functions=[name],
    )


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        pool = ThreadPoolExecutor(2)
        upper = pool.submit(build, "upper_part", "fmaxf(x[i], 0.f)")
        again = pool.submit(build, "upper_again", "x[i] > 0.f ? x[i] : 0.f")
        pool.shutdown(wait=True)
        self.upper, self.again = upper.result(), again.result()

    def forward(self, x):
        x = x.contiguous()
        return self.upper.upper_part(x) if x.dim() == 2 else self.again.upper_again(x)
