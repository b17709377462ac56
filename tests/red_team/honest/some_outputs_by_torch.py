# problem: norm_and_parts
# mechanism: four outputs: means and places by PyTorch, lengths and the rest by the kernel
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="some_outputs_by_torch",
    cpp_sources="std::vector<torch::Tensor> normalise(torch::Tensor x, torch::Tensor mean);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void normalise_kernel(const float* in, const float* mean, float* out, float* length, int rows, int width) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.f, centre = mean[row];
    for (int i = 0; i < width; ++i) sum += (in[row * width + i] - centre) * (in[row * width + i] - centre);
    length[row] = sqrtf(sum);
    for (int i = 0; i < width; ++i) out[row * width + i] = (in[row * width + i] - centre) / length[row];
}
std::vector<torch::Tensor> normalise(torch::Tensor x, torch::Tensor mean) {
    auto out = torch::empty_like(x), length = torch::empty_like(mean);
    normalise_kernel<<<1, 32>>>(x.data_ptr<float>(), mean.data_ptr<float>(), out.data_ptr<float>(), length.data_ptr<float>(), x.size(0), x.size(1));
    return {out, length};
}
""",
    functions=["normalise"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        mean = x.mean(dim=1, keepdim=True)
        out, length = ext.normalise(x, mean)
        return out, mean, length, x.argmax(dim=1)
