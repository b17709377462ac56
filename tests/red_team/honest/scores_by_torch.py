# problem: attention
# mechanism: PyTorch multiplies queries and keys, one kernel does the softmax and the second product
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="scores_by_torch",
    cpp_sources="torch::Tensor mix(torch::Tensor scores, torch::Tensor v, double scale);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void mix_kernel(const float* s, const float* v, float* y, float scale, int rows, int length, int width) {
    int row = blockIdx.x;
    s += (size_t)row * length;
    v += (size_t)(row / rows) * length * width;
    float top = s[0] * scale, sum = 0.f;
    for (int j = 1; j < length; ++j) top = fmaxf(top, s[j] * scale);
    for (int j = 0; j < length; ++j) sum += expf(s[j] * scale - top);
    for (int d = threadIdx.x; d < width; d += blockDim.x) {
        float mixed = 0.f;
        for (int j = 0; j < length; ++j) mixed += expf(s[j] * scale - top) * v[j * width + d];
        y[(size_t)row * width + d] = mixed / sum;
    }
}
torch::Tensor mix(torch::Tensor scores, torch::Tensor v, double scale) {
    int batch = scores.size(0), rows = scores.size(1), length = scores.size(2), width = v.size(2);
    auto y = torch::empty({batch, rows, width}, v.options());
    mix_kernel<<<batch * rows, 32>>>(scores.data_ptr<float>(), v.data_ptr<float>(), y.data_ptr<float>(), (float)scale, rows, length, width);
    return y;
}
""",
    functions=["mix"],
)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        return ext.mix(torch.bmm(q, k.transpose(1, 2)), v.contiguous(), q.shape[-1] ** -0.5)
