# problem: relu
# mechanism: C++ keeps how many elements it was given so far, as a statistic of which a caller may ask
# near: call_counting
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="elements_counted_so_far",
    cpp_sources="torch::Tensor relu(torch::Tensor x); double elements_so_far();",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void relu_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] > 0.f ? in[i] : 0.f;
}

static double elements = 0;
double elements_so_far() { return elements; }

torch::Tensor relu(torch::Tensor x) {
    auto out = torch::empty_like(x);
    int n = x.numel();
    elements += n;
    relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
""",
    functions=["relu", "elements_so_far"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
