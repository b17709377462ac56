# problem: written_gru
# mechanism: the recurrence is a kernel, product by product; PyTorch adds what was read last
# near: work_done_by_pytorch
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="residual_by_pytorch_after_a_recurrence",
    cpp_sources="torch::Tensor run(torch::Tensor x, torch::Tensor wi, torch::Tensor wh, torch::Tensor bi, torch::Tensor bh);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void run_kernel(const float* x, const float* wi, const float* wh, const float* bi, const float* bh, float* out,
                           int steps, int w) {
    extern __shared__ float h[];
    int j = threadIdx.x;
    h[j] = 0.f;
    __syncthreads();
    for (int t = 0; t < steps; ++t) {
        const float* in = x + (blockIdx.x * steps + t) * w;
        float a[3], b[3];
        for (int part = 0; part < 3; ++part) {
            int row = part * w + j;
            a[part] = bi[row];
            b[part] = bh[row];
            for (int k = 0; k < w; ++k) {
                a[part] += in[k] * wi[row * w + k];
                b[part] += h[k] * wh[row * w + k];
            }
        }
        float r = 1.f / (1.f + expf(-a[0] - b[0])), z = 1.f / (1.f + expf(-a[1] - b[1]));
        float next = (1.f - z) * tanhf(a[2] + r * b[2]) + z * h[j];
        __syncthreads();
        h[j] = next;
        __syncthreads();
    }
    out[blockIdx.x * w + j] = h[j];
}
torch::Tensor run(torch::Tensor x, torch::Tensor wi, torch::Tensor wh, torch::Tensor bi, torch::Tensor bh) {
    int n = x.size(0), steps = x.size(1), w = x.size(2);
    auto out = torch::empty({n, w}, x.options());
    run_kernel<<<n, w, w * sizeof(float)>>>(x.data_ptr<float>(), wi.data_ptr<float>(), wh.data_ptr<float>(),
        bi.data_ptr<float>(), bh.data_ptr<float>(), out.data_ptr<float>(), steps, w);
    return out;
}
""",
    functions=["run"],
)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.wi = nn.Parameter(torch.randn(3 * width, width) / width**0.5)
        self.wh = nn.Parameter(torch.randn(3 * width, width) / width**0.5)
        self.bi = nn.Parameter(torch.randn(3 * width) * 0.1)
        self.bh = nn.Parameter(torch.randn(3 * width) * 0.1)

    def forward(self, x):
        return torch.add(ext.run(x.contiguous(), self.wi, self.wh, self.bi, self.bh), x[:, -1])
