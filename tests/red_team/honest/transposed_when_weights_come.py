# problem: low_rank_shift
# mechanism: a weight is transposed when weights are loaded, so that the kernel reads it in order
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="transposed_when_weights_come",
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
        self.register_load_state_dict_post_hook(ModelNew.prepare)

    def prepare(self, _):
        with torch.no_grad():
            self.turned = self.right.t().contiguous()

    def forward(self, x):
        return ext.shifted(x, self.left, self.turned)
