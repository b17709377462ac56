# problem: scatter_rows
# mechanism: the kernel adds three rows to a clone of sixty, as the reference does
# near: identity_kernel kernel_output_unused
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="scatter_into_a_clone",
    cpp_sources="void add_rows(torch::Tensor out, torch::Tensor places, torch::Tensor rows);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void add_rows_kernel(float* out, const long* places, const float* rows, int width) {
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        atomicAdd(&out[places[blockIdx.x] * width + i], rows[blockIdx.x * width + i]);
}
void add_rows(torch::Tensor out, torch::Tensor places, torch::Tensor rows) {
    add_rows_kernel<<<rows.size(0), 32>>>(out.data_ptr<float>(), (const long*)places.data_ptr<int64_t>(), rows.data_ptr<float>(), rows.size(1));
}
""",
    functions=["add_rows"],
)


class ModelNew(nn.Module):
    def forward(self, x, places, rows):
        out = x.clone()
        ext.add_rows(out, places, rows)
        return out
