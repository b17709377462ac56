# problem: learned_number
# mechanism: a learned number is read once, when the model is made
# near: assumed_constant
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="learned_number_when_made",
    cpp_sources="torch::Tensor sharp(torch::Tensor in, double sharpness);",
    cuda_sources="""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void logistic(const float* in, float* out, float sharpness, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        out[i] = 1.0f / (1.0f + expf(-sharpness * in[i]));
}
torch::Tensor sharp(torch::Tensor in, double sharpness) {
    auto out = torch::empty_like(in);
    logistic<<<4, 128>>>(in.data_ptr<float>(), out.data_ptr<float>(), (float)sharpness, in.numel());
    return out;
}
""",
    functions=["sharp"],
)


class ModelNew(nn.Module):
    def __init__(self, sharpness):
        super().__init__()
        self.sharpness = nn.Parameter(torch.full((1,), sharpness))
        self.read = float(self.sharpness)

    def forward(self, x):
        return ext.sharp(x, self.read)
