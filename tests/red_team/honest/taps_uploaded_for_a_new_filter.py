# problem: blur
# mechanism: the filter goes to constant memory when another one is handed over, told by its address
# near: result_cache
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="blur_from_constants",
    cpp_sources="at::Tensor blur(at::Tensor x, at::Tensor taps);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__constant__ float filter[9];

__global__ void blur_kernel(const float* x, float* y, int height, int width, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int column = i % width, row = i / width % height;
    float sum = 0.f, total = 0.f;
    for (int k = 0; k < 9; ++k) {
        int r = row + k / 3 - 1, c = column + k % 3 - 1;
        total += filter[k];
        if (r >= 0 && r < height && c >= 0 && c < width) sum += filter[k] * x[i + (k / 3 - 1) * width + k % 3 - 1];
    }
    y[i] = sum / total;
}

at::Tensor blur(at::Tensor x, at::Tensor taps) {
    static const void* uploaded = nullptr;
    const float* given = taps.data_ptr<float>();
    if (given != uploaded) {
        cudaError_t error = cudaMemcpyToSymbol(filter, given, 9 * sizeof(float), 0, cudaMemcpyDeviceToDevice);
        TORCH_CHECK(error == cudaSuccess, cudaGetErrorString(error));
        uploaded = given;
    }
    auto y = at::empty_like(x);
    int n = x.numel();
    blur_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(2), x.size(3), n);
    return y;
}
""",
    functions=["blur"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("taps", torch.tensor([[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]))

    def forward(self, x):
        return ext.blur(x, self.taps)
