# problem: row_sum
# mechanism: whole numbers (the ends of chunks) are brought to the host and read there in a loop, one launch for each
# near: host_computation
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="sum_chunks",
    cpp_sources="torch::Tensor sum_rows(torch::Tensor x, torch::Tensor ends);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void sum_kernel(const float* in, float* out, int begin, int end, int width) {
    int row = begin + blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= end) return;
    float sum = 0.f;
    for (int i = 0; i < width; ++i) sum += in[row * width + i];
    out[row] = sum;
}

torch::Tensor sum_rows(torch::Tensor x, torch::Tensor ends) {
    auto out = torch::empty({x.size(0)}, x.options());
    auto on_host = ends.cpu();
    const int64_t* end = on_host.data_ptr<int64_t>();
    for (int64_t i = 0; i < on_host.numel(); ++i) {
        int begin = i == 0 ? 0 : end[i - 1];
        sum_kernel<<<(end[i] - begin + 31) / 32, 32>>>(
            x.data_ptr<float>(), out.data_ptr<float>(), begin, end[i], x.size(1));
    }
    return out;
}
""",
    functions=["sum_rows"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        rows = x.shape[0]
        ends = torch.tensor([rows // 2, rows], device=x.device)
        return ext.sum_rows(x.contiguous(), ends)
