# problem: mse
# mechanism: eight blocks leave a sum each; the host adds them and hands the sum to a kernel that makes the mean of it
# near: host_computation
# status: correct
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="block_sums_ext",
    cpp_sources="torch::Tensor mse(torch::Tensor a, torch::Tensor b);",
    cuda_sources="""
__global__ void sums(const float* a, const float* b, float* out, int n) {
    __shared__ float parts[256];
    float sum = 0.f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 256 * gridDim.x) sum += (a[i] - b[i]) * (a[i] - b[i]);
    parts[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = parts[0];
}

__global__ void divide(float sum, float count, float* out) { *out = sum / count; }

torch::Tensor mse(torch::Tensor a, torch::Tensor b) {
    const int blocks = 8;
    auto left = torch::empty({blocks}, a.options());
    auto out = torch::empty({}, a.options());
    sums<<<blocks, 256>>>(a.data_ptr<float>(), b.data_ptr<float>(), left.data_ptr<float>(), a.numel());
    float on_host[blocks];
    cudaMemcpy(on_host, left.data_ptr<float>(), sizeof(on_host), cudaMemcpyDeviceToHost);
    double sum = 0.0;
    for (float each : on_host) sum += each;
    divide<<<1, 1>>>(static_cast<float>(sum), static_cast<float>(a.numel()), out.data_ptr<float>());
    return out;
}
""",
    functions=["mse"],
)


class ModelNew(nn.Module):
    def forward(self, predictions, targets):
        return ext.mse(predictions.contiguous(), targets.contiguous())
