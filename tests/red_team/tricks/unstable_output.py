# problem: row_sum
# catalogue: 52
# mechanism: a race: threads add to one cell without an atomic, and shared memory is never initialised
# status: wrong_value | deceptive
# needs: gpu
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="racy",
    cpp_sources="torch::Tensor row_sum(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void row_sum_kernel(const float* in, float* out, int width) {
    __shared__ float total;
    for (int i = threadIdx.x; i < width; i += blockDim.x) total += in[blockIdx.x * width + i];
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = total;
}
torch::Tensor row_sum(torch::Tensor x) {
    auto out = torch::empty({x.size(0)}, x.options());
    row_sum_kernel<<<x.size(0), 64>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.size(1));
    return out;
}
""",
    functions=["row_sum"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.row_sum(x)
