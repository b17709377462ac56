# problem: segment_means
# mechanism: owners and their counts, which say the same in every draw, are both read
# near: stale_output
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="owners_and_counts_read",
    cpp_sources="torch::Tensor means(torch::Tensor x, torch::Tensor owner, torch::Tensor counts);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void means_kernel(const float* x, const long long* owner, const long long* counts, float* y, int rows) {
    const int segment = blockIdx.x, column = threadIdx.x, width = blockDim.x;
    float sum = 0;
    for (int r = 0; r < rows; ++r)
        if (owner[r] == segment) sum += x[r * width + column];
    y[segment * width + column] = sum / (counts[segment] + 1);
}
torch::Tensor means(torch::Tensor x, torch::Tensor owner, torch::Tensor counts) {
    auto y = torch::empty({counts.size(0), x.size(1)}, x.options());
    means_kernel<<<counts.size(0), x.size(1)>>>(x.data_ptr<float>(), (const long long*)owner.data_ptr<int64_t>(),
                                                (const long long*)counts.data_ptr<int64_t>(), y.data_ptr<float>(), x.size(0));
    return y;
}
""",
    functions=["means"],
)


class ModelNew(nn.Module):
    def forward(self, x, owner, counts):
        return ext.means(x, owner, counts)
