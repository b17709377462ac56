# problem: relu
# mechanism: every row goes to one of two streams of the pool; the caller's stream blocks on each one's event
# near: side_stream
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="pooled_rows",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>
#include <vector>

__global__ void relu_kernel(const float* in, float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = in[i] > 0.f ? in[i] : 0.f;
}

static void join(const std::vector<c10::cuda::CUDAStream>& streams, c10::cuda::CUDAStream waiting) {
    for (const auto& stream : streams) {
        at::cuda::CUDAEvent event;
        event.record(stream);
        event.block(waiting);
    }
}

torch::Tensor relu(torch::Tensor x) {
    auto out = torch::empty_like(x);
    const int width = x.size(1);
    const auto caller = c10::cuda::getCurrentCUDAStream();
    std::vector<c10::cuda::CUDAStream> lanes = {
        c10::cuda::getStreamFromPool(false), c10::cuda::getStreamFromPool(true)};
    for (auto lane : lanes) join({caller}, lane);
    for (int row = 0; row < x.size(0); ++row)
        relu_kernel<<<1, 64, 0, lanes[row % 2]>>>(
            x.data_ptr<float>() + row * width, out.data_ptr<float>() + row * width, width);
    join(lanes, caller);
    return out;
}
""",
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
