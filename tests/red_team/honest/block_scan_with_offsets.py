# problem: running_sum
# mechanism: the kernel scans blocks, PyTorch adds up the blocks' sums, a second kernel adds these offsets
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="block_scan_with_offsets",
    cpp_sources="std::vector<torch::Tensor> scan(torch::Tensor x, int64_t block); torch::Tensor shift_(torch::Tensor x, torch::Tensor offsets, int64_t block);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void scan_kernel(const float* in, float* out, float* sums, int block, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float sum = 0.f;
    for (int j = 0; j < block; ++j) out[i * block + j] = sum += in[i * block + j];
    sums[i] = sum;
}
__global__ void shift_kernel(float* data, const float* offsets, int block, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] += offsets[i / block];
}
std::vector<torch::Tensor> scan(torch::Tensor x, int64_t block) {
    auto out = torch::empty_like(x), sums = torch::empty({x.size(0), x.size(1) / block}, x.options());
    int count = sums.numel();
    scan_kernel<<<(count + 31) / 32, 32>>>(x.data_ptr<float>(), out.data_ptr<float>(), sums.data_ptr<float>(), (int)block, count);
    return {out, sums};
}
torch::Tensor shift_(torch::Tensor x, torch::Tensor offsets, int64_t block) {
    int n = x.numel();
    shift_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), offsets.data_ptr<float>(), (int)block, n);
    return x;
}
""",
    functions=["scan", "shift_"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        out, sums = ext.scan(x, 32)
        return ext.shift_(out, torch.cumsum(sums, dim=1) - sums, 32)
