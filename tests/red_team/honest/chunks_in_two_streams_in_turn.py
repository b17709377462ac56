# problem: relu
# mechanism: chunks on two side streams; before each launch its slot's last event is awaited, and a destructor waits for all
# near: side_stream
# status: correct
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="chunks_in_turn",
    cpp_sources="torch::Tensor relu(torch::Tensor x);",
    cuda_sources="""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <algorithm>
#include <cuda_runtime.h>

__global__ void relu_kernel(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] > 0.f ? in[i] : 0.f;
}

struct Slots {
    cudaStream_t aside[2];
    cudaEvent_t begun, done[2];
    Slots() {
        cudaEventCreateWithFlags(&begun, cudaEventDisableTiming);
        for (int s = 0; s < 2; ++s) {
            cudaStreamCreateWithFlags(&aside[s], cudaStreamNonBlocking);
            cudaEventCreateWithFlags(&done[s], cudaEventDisableTiming);
        }
    }
};

class Fork {
public:
    Fork(Slots& slots, cudaStream_t caller) : slots_(slots), caller_(caller) {
        cudaEventRecord(slots_.begun, caller_);
        for (int s = 0; s < 2; ++s) cudaStreamWaitEvent(slots_.aside[s], slots_.begun, 0);
    }
    ~Fork() {
        for (int s = 0; s < 2; ++s) wait(s);
    }
    void wait(int s) { cudaStreamWaitEvent(caller_, slots_.done[s], 0); }
    void mark(int s) { cudaEventRecord(slots_.done[s], slots_.aside[s]); }

private:
    Slots& slots_;
    cudaStream_t caller_;
};

torch::Tensor relu(torch::Tensor x) {
    static Slots slots;
    auto out = torch::empty_like(x);
    const int n = x.numel(), chunk = (n + 7) / 8;
    Fork fork(slots, at::cuda::getCurrentCUDAStream());
    for (int c = 0, begin = 0; begin < n; ++c, begin += chunk) {
        const int size = std::min(chunk, n - begin), s = c % 2;
        fork.wait(s);
        relu_kernel<<<(size + 255) / 256, 256, 0, slots.aside[s]>>>(
            x.data_ptr<float>() + begin, out.data_ptr<float>() + begin, size);
        fork.mark(s);
    }
    return out;
}
""",
    functions=["relu"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
