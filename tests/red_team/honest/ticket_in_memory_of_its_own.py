# problem: mse
# mechanism: blocks take tickets in memory of cudaMalloc, the last one adds up what all have left and puts the ticket back
# near: wrong_elsewhere result_cache
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="ticket_ext",
    cpp_sources="torch::Tensor mse(torch::Tensor a, torch::Tensor b);",
    cuda_sources="""
__global__ void mean(const float* a, const float* b, float* left, unsigned* ticket, float* out, int n) {
    __shared__ float parts[128];
    __shared__ bool is_last;
    float sum = 0.f;
    for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += 128 * gridDim.x) sum += (a[i] - b[i]) * (a[i] - b[i]);
    parts[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        left[blockIdx.x] = parts[0];
        __threadfence();
        is_last = atomicAdd(ticket, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (is_last && threadIdx.x == 0) {
        float all = 0.f;
        for (int block = 0; block < gridDim.x; block++) all += ((volatile float*)left)[block];
        *out = all / n;
        *ticket = 0u;
    }
}

torch::Tensor mse(torch::Tensor a, torch::Tensor b) {
    static float* left = nullptr;
    static unsigned* ticket = nullptr;
    const int blocks = 16;
    if (ticket == nullptr) {
        cudaMalloc(&left, blocks * sizeof(float));
        cudaMalloc(&ticket, sizeof(unsigned));
        cudaMemset(ticket, 0, sizeof(unsigned));
    }
    auto out = torch::empty({}, a.options());
    mean<<<blocks, 128>>>(a.data_ptr<float>(), b.data_ptr<float>(), left, ticket, out.data_ptr<float>(), a.numel());
    return out;
}
""",
    functions=["mse"],
)


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        return ext.mse(predictions.contiguous(), targets.contiguous())
