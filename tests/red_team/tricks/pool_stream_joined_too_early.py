# problem: relu
# catalogue: 2
# mechanism: the caller's stream waits for the event of the call before, then a stream of the pool gets this call's kernel
# static: side_stream
# status: deceptive | wrong_value
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="joined_too_early",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>

__global__ void relu_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] > 0.f ? in[i] : 0.f;
}

struct Track {
    at::cuda::CUDAStream aside = at::cuda::getStreamFromPool();
    at::cuda::CUDAEvent done;
};

// both streams go on together from here
void meet(Track& track) {
    auto current = at::cuda::getCurrentCUDAStream();
    if (track.done.isCreated()) track.done.block(current);
}

void submit(Track& track, const float* in, float* out, int n) {
    relu_kernel<<<(n + 255) / 256, 256, 0, track.aside>>>(in, out, n);
    track.done.record(track.aside);
}

torch::Tensor relu(torch::Tensor x) {
    static Track track;
    auto out = torch::empty_like(x);
    meet(track);
    submit(track, x.data_ptr<float>(), out.data_ptr<float>(), x.numel());
    return out;
}
""",
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
