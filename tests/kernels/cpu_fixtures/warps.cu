// Warp operations, atomics, cooperative groups, lockstep.
#include <torch/extension.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <ATen/cuda/Atomic.cuh>
namespace cg = cooperative_groups;
#define FULL 0xffffffffu

template <typename T>
__global__ void shuffle_kernel(const T* x, T* out, int n) {
    const int i = threadIdx.x;
    T v = x[i];
    out[i] = __shfl_sync(FULL, v, 5);
    out[n + i] = __shfl_up_sync(FULL, v, 3);
    out[2 * n + i] = __shfl_down_sync(FULL, v, 4);
    out[3 * n + i] = __shfl_xor_sync(FULL, v, 9);
    out[4 * n + i] = __shfl_sync(FULL, v, 2, 8);
    out[5 * n + i] = __shfl_up_sync(FULL, v, 2, 16);
    out[6 * n + i] = __shfl_down_sync(FULL, v, 1, 4);
    out[7 * n + i] = __shfl_xor_sync(FULL, v, 1, 2);
}
torch::Tensor shuffles(torch::Tensor x) {
    const int n = x.numel();
    auto out = torch::empty({8, n}, x.options());
    if (x.scalar_type() == torch::kHalf)
        shuffle_kernel<<<1, n>>>(reinterpret_cast<const __half*>(x.data_ptr<at::Half>()), reinterpret_cast<__half*>(out.data_ptr<at::Half>()), n);
    else if (x.scalar_type() == torch::kInt) shuffle_kernel<<<1, n>>>(x.data_ptr<int>(), out.data_ptr<int>(), n);
    else if (x.scalar_type() == torch::kLong) shuffle_kernel<<<1, n>>>((const long long*)x.data_ptr<int64_t>(), (long long*)out.data_ptr<int64_t>(), n);
    else if (x.scalar_type() == torch::kDouble) shuffle_kernel<<<1, n>>>(x.data_ptr<double>(), out.data_ptr<double>(), n);
    else shuffle_kernel<<<1, n>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}

__global__ void vote_kernel(const int* x, int* out, int n) {
    const int i = threadIdx.x, v = x[i];
    out[i] = __ballot_sync(FULL, v > 0);
    out[n + i] = __any_sync(FULL, v > 5);
    out[2 * n + i] = __all_sync(FULL, v > -100);
    out[3 * n + i] = __match_any_sync(FULL, v);
    int same;
    out[4 * n + i] = __match_all_sync(FULL, v / 1000, &same) + same;
    out[5 * n + i] = __reduce_add_sync(FULL, v);
    out[6 * n + i] = __reduce_max_sync(FULL, v);
    out[7 * n + i] = __reduce_min_sync(FULL, v);
    out[8 * n + i] = __syncthreads_count(v > 0);
    out[9 * n + i] = __syncthreads_and(v > 0) * 2 + __syncthreads_or(v > 0);
    if (v > 0) {
        unsigned active = __activemask();
        int leader = __ffs(active) - 1;
        out[10 * n + i] = __popc(active) + 100 * __shfl_sync(active, i, leader);
    } else {
        out[10 * n + i] = -__popc(__activemask());
    }
}
torch::Tensor votes(torch::Tensor x) {
    const int n = x.numel();
    auto out = torch::empty({11, n}, x.options());
    vote_kernel<<<1, n>>>(x.data_ptr<int>(), out.data_ptr<int>(), n);
    return out;
}

__inline__ __device__ float warp_sum(float v) {
    for (int offset = warpSize / 2; offset > 0; offset /= 2) v += __shfl_down_sync(FULL, v, offset);
    return v;
}
__inline__ __device__ float block_sum(float v) {
    static __shared__ float shared[32];
    const int lane = threadIdx.x % warpSize, wid = threadIdx.x / warpSize;
    v = warp_sum(v);
    if (lane == 0) shared[wid] = v;
    __syncthreads();
    v = threadIdx.x < blockDim.x / warpSize ? shared[lane] : 0.f;
    if (wid == 0) v = warp_sum(v);
    return v;
}
__global__ void softmax_kernel(const float* x, float* y, int n) {
    __shared__ float total;
    float v = threadIdx.x < n ? __expf(x[blockIdx.x * n + threadIdx.x]) : 0.f;
    float s = block_sum(v);
    if (threadIdx.x == 0) total = s;
    __syncthreads();
    if (threadIdx.x < n) y[blockIdx.x * n + threadIdx.x] = v / total;
}
torch::Tensor softmax(torch::Tensor x) {
    auto y = torch::empty_like(x);
    softmax_kernel<<<x.size(0), (x.size(1) + 31) / 32 * 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
    return y;
}
// Lanes beyond n have left when the others shuffle.
__global__ void partial_kernel(const float* x, float* out, int n) {
    if (threadIdx.x >= n) return;
    float v = x[threadIdx.x];
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_down_sync(FULL, v, offset);
    if (threadIdx.x == 0) out[0] = v;
}
torch::Tensor partial_sum(torch::Tensor x) {
    auto out = torch::empty({1}, x.options());
    partial_kernel<<<1, 32>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.numel());
    return out;
}

// The reduction of old: lanes of a warp in step, through volatile shared memory.
__device__ void warp_reduce(volatile float* s, int t) {
    s[t] += s[t + 32];
    s[t] += s[t + 16];
    s[t] += s[t + 8];
    s[t] += s[t + 4];
    s[t] += s[t + 2];
    s[t] += s[t + 1];
}
template <unsigned int blockSize>
__global__ void volatile_sum_kernel(const float* x, float* out, int n) {
    extern __shared__ float sdata[];
    unsigned int tid = threadIdx.x;
    float v = 0;
    for (int i = tid; i < n; i += blockSize) v += x[blockIdx.x * n + i];
    sdata[tid] = v;
    __syncthreads();
    if (blockSize >= 256) { if (tid < 128) sdata[tid] += sdata[tid + 128]; __syncthreads(); }
    if (blockSize >= 128) { if (tid < 64) sdata[tid] += sdata[tid + 64]; __syncthreads(); }
    if (tid < 32) warp_reduce(sdata, tid);
    if (tid == 0) out[blockIdx.x] = sdata[0];
}
torch::Tensor volatile_sum(torch::Tensor x) {
    auto out = torch::empty({x.size(0)}, x.options());
    volatile_sum_kernel<256><<<x.size(0), 256, 256 * sizeof(float)>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.size(1));
    return out;
}
// An inclusive scan whose reads must all come before its writes.
__global__ void volatile_scan_kernel(const int* x, int* out) {
    __shared__ volatile int s[32];
    const int t = threadIdx.x;
    s[t] = x[t];
    for (int d = 1; d < 32; d *= 2)
        if (t >= d) s[t] += s[t - d];
    out[t] = s[t];
}
torch::Tensor volatile_scan(torch::Tensor x) {
    auto out = torch::empty_like(x);
    volatile_scan_kernel<<<1, 32>>>(x.data_ptr<int>(), out.data_ptr<int>());
    return out;
}

// Atomics -----------------------------------------------------------------------------------------------------------------
__device__ float atomicMaxFloat(float* address, float value) {
    int* as_int = (int*)address;
    int old = *as_int, assumed;
    do {
        assumed = old;
        old = atomicCAS(as_int, assumed, __float_as_int(fmaxf(value, __int_as_float(assumed))));
    } while (assumed != old);
    return __int_as_float(old);
}
__global__ void atomics_kernel(float* f, double* d, int* i, unsigned* u, unsigned long long* l, long long* s, __half* h, int n) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    atomicAdd(f, 1.0f);
    atomicAdd_block(f + 1, 0.5f);
    atomicMaxFloat(f + 2, (float)(t % 100));
    atomicExch(f + 3, 7.0f);
    atomicAdd(d, 2.0);
    atomicAdd(i, 1);
    atomicSub(i + 1, 1);
    atomicMin(i + 2, -t);
    atomicMax(i + 3, t);
    atomicAnd(i + 4, ~(1 << (t % 8)));
    atomicOr(i + 5, 1 << (t % 8));
    atomicXor(i + 6, 1 << (t % 4));
    atomicCAS(i + 7, 0, 5);
    atomicInc(u, 9);
    atomicDec(u + 1, 9);
    atomicMax_system(u + 2, (unsigned)t);
    atomicAdd(l, 1ull << 33);
    atomicMax(l + 1, (unsigned long long)t);
    atomicMin(s, (long long)-t);
    atomicAdd(h, __float2half(1.0f));
    gpuAtomicAdd(f + 4, 1.0f);
}
std::vector<torch::Tensor> atomics(int64_t n) {
    auto options = torch::device(torch::kCUDA);
    auto f = torch::zeros({5}, options), d = torch::zeros({1}, options.dtype(torch::kDouble)), i = torch::zeros({8}, options.dtype(torch::kInt));
    auto u = torch::zeros({3}, options.dtype(torch::kInt)), l = torch::zeros({2}, options.dtype(torch::kLong)), s = torch::zeros({1}, options.dtype(torch::kLong));
    auto h = torch::zeros({1}, options.dtype(torch::kHalf));
    i[4] = 255;
    atomics_kernel<<<(n + 127) / 128, 128>>>(f.data_ptr<float>(), d.data_ptr<double>(), i.data_ptr<int>(), (unsigned*)u.data_ptr<int>(),
        (unsigned long long*)l.data_ptr<int64_t>(), (long long*)s.data_ptr<int64_t>(), (__half*)h.data_ptr<at::Half>(), n);
    return {f, d, i, u, l, s, h};
}
// The last block to finish adds up what all have written.
__device__ unsigned finished = 0;
__global__ void last_block_kernel(const float* x, float* partial, float* out, int n) {
    __shared__ bool last;
    float v = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) v += x[i];
    v = block_sum(v);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = v;
        __threadfence();
        last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float total = 0;
        for (int b = 0; b < gridDim.x; ++b) total += partial[b];
        out[0] = total;
    }
}
torch::Tensor last_block_sum(torch::Tensor x) {
    auto partial = torch::empty({16}, x.options()), out = torch::empty({1}, x.options());
    last_block_kernel<<<16, 64>>>(x.data_ptr<float>(), partial.data_ptr<float>(), out.data_ptr<float>(), x.numel());
    return out;
}
__device__ int mutex_word = 0;
__global__ void lock_kernel(int* counter) {
    bool done = false;
    while (!done) {
        if (atomicCAS(&mutex_word, 0, 1) == 0) {
            *counter += 1;
            __threadfence();
            atomicExch(&mutex_word, 0);
            done = true;
        }
    }
    __syncthreads();
}
torch::Tensor locked_count(int64_t blocks) {
    auto out = torch::zeros({1}, torch::dtype(torch::kInt).device(torch::kCUDA));
    lock_kernel<<<blocks, 64>>>(out.data_ptr<int>());
    return out;
}

// Cooperative groups ------------------------------------------------------------------------------------------------------
__global__ void groups_kernel(const float* x, float* out, int n) {
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
    auto four = cg::tiled_partition<4>(warp);
    const int i = block.thread_rank();
    float v = x[i];
    for (int d = warp.size() / 2; d > 0; d /= 2) v += warp.shfl_down(v, d);
    out[i] = warp.shfl(v, 0);
    out[n + i] = cg::reduce(four, x[i], cg::plus<float>());
    out[2 * n + i] = cg::reduce(warp, x[i], cg::greater<float>()) + four.thread_rank() + 10 * four.meta_group_rank();
    block.sync();
    out[3 * n + i] = warp.any(x[i] > 1.0f) + 2 * warp.all(x[i] > -1000.0f) + 4 * __popc(four.ballot(x[i] > 0));
    if (i % 3 == 0) {
        auto active = cg::coalesced_threads();
        out[4 * n + i] = active.size() + 100 * active.thread_rank() + 10000 * active.shfl(i, 1);
    } else {
        out[4 * n + i] = 0;
    }
    out[5 * n + i] = cg::inclusive_scan(warp, (int)1);
    cg::sync(block);
}
torch::Tensor groups(torch::Tensor x) {
    const int n = x.numel();
    auto out = torch::empty({6, n}, x.options());
    groups_kernel<<<1, n>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}
__global__ void grid_sync_kernel(float* x, float* out, int n) {
    auto grid = cg::this_grid();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = x[i] * 2;
    grid.sync();
    if (i < n) out[i] = x[n - 1 - i];
    grid.sync();
    if (i < n) x[i] = out[i] + 1;
}
std::vector<torch::Tensor> grid_sync(torch::Tensor given) {
    auto x = given.clone(), out = torch::empty_like(given);
    float *a = x.data_ptr<float>(), *b = out.data_ptr<float>();
    int n = x.numel();
    void* arguments[] = {&a, &b, &n};
    TORCH_CHECK(cudaLaunchCooperativeKernel((void*)grid_sync_kernel, dim3(8), dim3(32), arguments, 0, 0) == cudaSuccess);
    return {x, out};
}
void grid_sync_plain(torch::Tensor x) {
    auto out = torch::empty_like(x);
    grid_sync_kernel<<<2, 32>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.numel());
}
// 16 threads shuffle among themselves while the others go another way.
__global__ void diverged_kernel(int* out) {
    const int i = threadIdx.x;
    if (i < 16) out[i] = __shfl_xor_sync(0x0000ffff, i, 1);
    else out[i] = __shfl_down_sync(0xffff0000, 10 * i, 1);
    __syncwarp();
    out[i] += __shfl_sync(FULL, i, 31);
}
torch::Tensor diverged() {
    auto out = torch::empty({32}, torch::dtype(torch::kInt).device(torch::kCUDA));
    diverged_kernel<<<1, 32>>>(out.data_ptr<int>());
    return out;
}
