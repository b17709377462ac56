# problem: byte_table
# mechanism: zero points are copied when the model is made, as a state that is loaded then is
# near: assumed_constant
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="zero_points_kept_when_made",
    cpp_sources="torch::Tensor rows(torch::Tensor ids, torch::Tensor t, torch::Tensor s, torch::Tensor z);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void rows_kernel(const int64_t* ids, const int8_t* t, const float* s, const int* z, float* y, int w) {
    const int64_t id = ids[blockIdx.x];
    for (int c = threadIdx.x; c < w; c += blockDim.x) y[blockIdx.x * w + c] = ((float)t[id * w + c] - (float)z[c]) * s[c];
}
torch::Tensor rows(torch::Tensor ids, torch::Tensor t, torch::Tensor s, torch::Tensor z) {
    auto y = torch::empty({ids.size(0), t.size(1)}, s.options());
    rows_kernel<<<ids.size(0), 32>>>(ids.data_ptr<int64_t>(), t.data_ptr<int8_t>(), s.data_ptr<float>(), z.data_ptr<int>(),
                                     y.data_ptr<float>(), t.size(1));
    return y;
}
""",
    functions=["rows"],
)


class ModelNew(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.register_buffer("table", torch.randint(-100, 100, (rows, width), dtype=torch.int8))
        self.register_buffer("step", torch.rand(width) + 0.5)
        self.register_buffer("zero_point", torch.zeros(width, dtype=torch.int32))
        self.points = self.zero_point.clone()

    def forward(self, ids):
        return ext.rows(ids, self.table, self.step, self.points.to(ids.device))
