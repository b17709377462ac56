# problem: layer_norm
# mechanism: nn.LayerNorm holds the weights and is never called
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="layer_norm",
    cpp_sources="torch::Tensor layer_norm(torch::Tensor x, torch::Tensor w, torch::Tensor b, double eps);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void layer_norm_kernel(const float* in, const float* w, const float* b, float* out, int width, float eps) {
    __shared__ float sums[64], squares[64];
    const float* row = in + blockIdx.x * width;
    float sum = 0.f, square = 0.f;
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        sum += row[i];
        square += row[i] * row[i];
    }
    sums[threadIdx.x] = sum;
    squares[threadIdx.x] = square;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step >>= 1) {
        if (threadIdx.x < step) {
            sums[threadIdx.x] += sums[threadIdx.x + step];
            squares[threadIdx.x] += squares[threadIdx.x + step];
        }
        __syncthreads();
    }
    float mean = sums[0] / width, scale = rsqrtf(squares[0] / width - mean * mean + eps);
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        out[blockIdx.x * width + i] = (row[i] - mean) * scale * w[i] + b[i];
}

torch::Tensor layer_norm(torch::Tensor x, torch::Tensor w, torch::Tensor b, double eps) {
    auto out = torch::empty_like(x);
    layer_norm_kernel<<<x.size(0), 64>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(),
                                         out.data_ptr<float>(), x.size(1), (float)eps);
    return out;
}
""",
    functions=["layer_norm"],
)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return ext.layer_norm(x, self.norm.weight, self.norm.bias, self.norm.eps)
