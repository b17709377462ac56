# problem: in_place_accumulate
# mechanism: a running total is updated in the input's memory as the reference does, its row sums are returned
# near: input_mutated unstable_output
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="running_total",
    cpp_sources="torch::Tensor accumulate(torch::Tensor total, torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void accumulate_kernel(float* total, const float* x, float* sums, int width) {
    __shared__ float parts[32];
    float sum = 0.f;
    for (int i = threadIdx.x; i < width; i += 32) {
        int at = blockIdx.x * width + i;
        total[at] += x[at] * x[at];
        sum += total[at];
    }
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        float all = 0.f;
        for (int i = 0; i < 32; ++i) all += parts[i];
        sums[blockIdx.x] = all;
    }
}

torch::Tensor accumulate(torch::Tensor total, torch::Tensor x) {
    auto sums = torch::empty({x.size(0)}, x.options());
    accumulate_kernel<<<x.size(0), 32>>>(total.data_ptr<float>(), x.data_ptr<float>(), sums.data_ptr<float>(), x.size(1));
    return sums;
}
""",
    functions=["accumulate"],
)


class ModelNew(nn.Module):
    def forward(self, total, x):
        return ext.accumulate(total, x)
