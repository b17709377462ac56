# problem: padded_softmax
# mechanism: a padding and lengths, which say the same in every draw, are both read
# near: stale_output
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="padding_and_lengths_read",
    cpp_sources="torch::Tensor padded(torch::Tensor scores, torch::Tensor padding, torch::Tensor lengths);",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void padded_kernel(const float* scores, const bool* padding, const long long* lengths, float* y, int width) {
    const int row = blockIdx.x;
    if (threadIdx.x) return;
    const float factor = logf((float)lengths[row] + 1);
    float top = -INFINITY, sum = 0;
    for (int i = 0; i < width; ++i)
        if (!padding[row * width + i]) top = fmaxf(top, scores[row * width + i] * factor);
    for (int i = 0; i < width; ++i)
        if (!padding[row * width + i]) sum += expf(scores[row * width + i] * factor - top);
    for (int i = 0; i < width; ++i)
        y[row * width + i] = !padding[row * width + i] ? expf(scores[row * width + i] * factor - top) / sum : 0;
}
torch::Tensor padded(torch::Tensor scores, torch::Tensor padding, torch::Tensor lengths) {
    auto y = torch::empty_like(scores);
    padded_kernel<<<scores.size(0), 32>>>(scores.data_ptr<float>(), padding.data_ptr<bool>(),
                                          (const long long*)lengths.data_ptr<int64_t>(), y.data_ptr<float>(), scores.size(1));
    return y;
}
""",
    functions=["padded"],
)


class ModelNew(nn.Module):
    def forward(self, scores, padding, lengths):
        return ext.padded(scores, padding, lengths)
