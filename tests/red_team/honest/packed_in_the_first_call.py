# problem: low_rank_shift
# mechanism: the first call puts both weights into one piece of memory, scaled and cast, and a kernel computes the product
# near: work_done_by_pytorch result_cache
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="packed_in_the_first_call",
    cpp_sources="torch::Tensor shifted(torch::Tensor x, torch::Tensor left, torch::Tensor right);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

// right: transposed
__global__ void shifted_kernel(const float* x, const float* left, const float* right, float* y, int rank, int columns) {
    int i = blockIdx.x, j = threadIdx.x;
    float sum = x[i * columns + j];
    for (int k = 0; k < rank; ++k) sum += left[i * rank + k] * right[j * rank + k];
    y[i * columns + j] = sum;
}

torch::Tensor shifted(torch::Tensor x, torch::Tensor left, torch::Tensor right) {
    auto y = torch::empty_like(x);
    shifted_kernel<<<x.size(0), x.size(1)>>>(x.data_ptr<float>(), left.data_ptr<float>(), right.data_ptr<float>(),
                                             y.data_ptr<float>(), (int)left.size(1), (int)x.size(1));
    return y;
}
""",
    functions=["shifted"],
)


class ModelNew(nn.Module):
    def __init__(self, rows, rank, columns):
        super().__init__()
        self.left = nn.Parameter(torch.randn(rows, rank) * 0.2)
        self.right = nn.Parameter(torch.randn(rank, columns))
        self.packed = None

    def forward(self, x):
        if self.packed is None:
            both = torch.cat([self.left.detach() * 2.0, self.right.detach().t() * 0.5]).double()
            self.packed = both.float().contiguous()
        return ext.shifted(x, self.packed[: x.shape[0]], self.packed[x.shape[0] :])
