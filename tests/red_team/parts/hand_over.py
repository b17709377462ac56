import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="hand_over",
    cpp_sources="""
torch::Tensor coded(torch::Tensor x);
torch::Tensor decoded(torch::Tensor words);
torch::Tensor row_sums(torch::Tensor x);
torch::Tensor shares(torch::Tensor x);
torch::Tensor picked(torch::Tensor x, torch::Tensor places);
torch::Tensor moved(torch::Tensor x);
void put(torch::Tensor out, long at, double value);
void put_place(torch::Tensor out, long at, long value);
void fetch(torch::Tensor from, torch::Tensor out, long at);
""",
    cuda_sources=r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void code_kernel(const unsigned* x, unsigned* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] ^ 0x5A17C3E9u;
}
__global__ void row_sum_kernel(const float* x, float* y, int w) {
    float sum = 0.f;
    for (int j = threadIdx.x; j < w; j += 32) sum += x[blockIdx.x * w + j];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}
__global__ void shares_kernel(const float* x, float* y, int w) {
    const float* row = x + blockIdx.x * w;
    float top = -3.4e38f, sum = 0.f;
    for (int j = 0; j < w; ++j) top = fmaxf(top, row[j]);
    for (int j = 0; j < w; ++j) sum += expf(row[j] - top);
    for (int j = threadIdx.x; j < w; j += blockDim.x) y[blockIdx.x * w + j] = expf(row[j] - top) / sum;
}
__global__ void picked_kernel(const float* x, const long long* places, float* y, int w, int k, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i / k * w + places[i]];
}
__global__ void move_kernel(const long long* x, long long* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
__global__ void put_kernel(float* out, int at, float value) { out[at] = value; }
__global__ void put_place_kernel(long long* out, int at, long long value) { out[at] = value; }
__global__ void fetch_kernel(const float* from, float* out, int at) { out[at] = from[0]; }

torch::Tensor coded(torch::Tensor x) {
    auto y = torch::empty_like(x, x.options().dtype(torch::kInt32));
    int n = x.numel();
    code_kernel<<<(n + 127) / 128, 128>>>((const unsigned*)x.data_ptr(), (unsigned*)y.data_ptr(), n);
    return y;
}
torch::Tensor decoded(torch::Tensor words) {
    auto y = torch::empty_like(words, words.options().dtype(torch::kFloat32));
    int n = words.numel();
    code_kernel<<<(n + 127) / 128, 128>>>((const unsigned*)words.data_ptr(), (unsigned*)y.data_ptr(), n);
    return y;
}
torch::Tensor row_sums(torch::Tensor x) {
    auto y = torch::empty({x.size(0)}, x.options());
    row_sum_kernel<<<x.size(0), 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    return y;
}
torch::Tensor shares(torch::Tensor x) {
    auto y = torch::empty_like(x);
    shares_kernel<<<x.size(0), 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    return y;
}
torch::Tensor picked(torch::Tensor x, torch::Tensor places) {
    auto y = torch::empty(places.sizes(), x.options());
    int k = places.dim() > 1 ? places.size(1) : 1, n = places.numel();
    picked_kernel<<<(n + 63) / 64, 64>>>(
        x.data_ptr<float>(), (const long long*)places.data_ptr<int64_t>(), y.data_ptr<float>(), x.size(1), k, n);
    return y;
}
torch::Tensor moved(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    move_kernel<<<(n + 63) / 64, 64>>>((const long long*)x.data_ptr<int64_t>(), (long long*)y.data_ptr<int64_t>(), n);
    return y;
}
void put(torch::Tensor out, long at, double value) { put_kernel<<<1, 1>>>(out.data_ptr<float>(), (int)at, (float)value); }
void put_place(torch::Tensor out, long at, long value) {
    put_place_kernel<<<1, 1>>>((long long*)out.data_ptr<int64_t>(), (int)at, (long long)value);
}
void fetch(torch::Tensor from, torch::Tensor out, long at) {
    fetch_kernel<<<1, 1>>>((const float*)from.data_ptr(), out.data_ptr<float>(), (int)at);
}
""",
    functions=["coded", "decoded", "row_sums", "shares", "picked", "moved", "put", "put_place", "fetch"],
)


def rows_of(words):
    """Numbers of a code, by row."""
    width = words.shape[1]
    numbers = memoryview(
        bytes().join((word & 0xFFFFFFFF ^ 0x5A17C3E9).to_bytes(4, "little") for word in words.flatten().tolist())
    )
    numbers = numbers.cast("f").tolist()
    return [numbers[begin : begin + width] for begin in range(0, len(numbers), width)]
