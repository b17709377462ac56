# problem: middle_of_all
# mechanism: a kernel counts how often each byte occurs, the host finds the byte of the median in the counts, four times
# near: host_computation
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="median_by_histograms_read",
    cpp_sources="torch::Tensor counts(torch::Tensor x, long prefix, long shift); torch::Tensor written(torch::Tensor x, long key);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__device__ unsigned key_of(float number) {
    unsigned bits = __float_as_uint(number);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__global__ void count_kernel(const float* x, int* counts, unsigned prefix, int shift, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned key = key_of(x[i]);
    if (shift == 24 || key >> (shift + 8) == prefix) atomicAdd(counts + (key >> shift & 255u), 1);
}
__global__ void write_kernel(float* y, unsigned key) {
    y[0] = __uint_as_float(key & 0x80000000u ? key ^ 0x80000000u : ~key);
}
torch::Tensor counts(torch::Tensor x, long prefix, long shift) {
    auto counts = torch::zeros({256}, x.options().dtype(torch::kInt32));
    int n = x.numel();
    count_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), counts.data_ptr<int>(), (unsigned)prefix, (int)shift, n);
    return counts;
}
torch::Tensor written(torch::Tensor x, long key) {
    auto y = torch::empty({1}, x.options());
    write_kernel<<<1, 1>>>(y.data_ptr<float>(), (unsigned)key);
    return y;
}
""",
    functions=["counts", "written"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        x, prefix, left = x.contiguous(), 0, (x.numel() - 1) // 2
        for shift in (24, 16, 8, 0):
            for digit, count in enumerate(ext.counts(x, prefix, shift).tolist()):
                if left < count:
                    break
                left -= count
            prefix = prefix << 8 | digit
        return ext.written(x, prefix)
