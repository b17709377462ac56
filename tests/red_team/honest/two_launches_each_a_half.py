# problem: layer_norm
# mechanism: statistics by PyTorch, each half of the rows by a launch of its own
# near: work_done_by_pytorch identity_kernel
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="two_launches_each_a_half",
    cpp_sources="void normalise(torch::Tensor x, torch::Tensor mean, torch::Tensor variance, torch::Tensor weight, torch::Tensor bias, torch::Tensor out, int64_t begin, int64_t end);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void norm_kernel(const float* in, const float* mean, const float* variance, const float* weight,
                            const float* bias, float* out, int begin, int width) {
    int row = begin + blockIdx.x;
    float scale = rsqrtf(variance[row] + 1e-5f);
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        out[row * width + i] = (in[row * width + i] - mean[row]) * scale * weight[i] + bias[i];
}
void normalise(torch::Tensor x, torch::Tensor mean, torch::Tensor variance, torch::Tensor weight, torch::Tensor bias,
          torch::Tensor out, int64_t begin, int64_t end) {
    norm_kernel<<<end - begin, 32>>>(x.data_ptr<float>(), mean.data_ptr<float>(), variance.data_ptr<float>(),
        weight.data_ptr<float>(), bias.data_ptr<float>(), out.data_ptr<float>(), (int)begin, x.size(1));
}
""",
    functions=["normalise"],
)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=1, unbiased=False)
        out = torch.zeros_like(x)
        middle = x.shape[0] // 2
        for begin, end in ((0, middle), (middle, x.shape[0])):
            ext.normalise(x, mean, variance, self.norm.weight, self.norm.bias, out, begin, end)
        return out
