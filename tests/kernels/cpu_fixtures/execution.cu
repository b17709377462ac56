// Indices, shared memory, barriers, templates, launches, symbols, error states.
#include <torch/extension.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <ATen/cuda/CUDAContext.h>
#include <vector>

#define CHECK_CUDA(x) TORCH_CHECK((x).is_cuda(), #x " must be a CUDA tensor")
#define CHECK_INPUT(x) CHECK_CUDA(x); TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
#define TILE 16
#define GLOBAL_ID (blockIdx.x * blockDim.x + threadIdx.x)
#define DIVUP(a, b) (((a) + (b) - 1) / (b))

// 3-d indices ---------------------------------------------------------------------------------------------------------
__global__ void index_kernel(int* out, int nx, int ny, int nz) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x < nx && y < ny && z < nz)
        out[(z * ny + y) * nx + x] = x + 100 * y + 10000 * z + 1000000 * (gridDim.x + gridDim.y + gridDim.z);
}
torch::Tensor indices(int64_t nx, int64_t ny, int64_t nz) {
    auto out = torch::empty({nz, ny, nx}, torch::TensorOptions().dtype(torch::kInt32).device(torch::kCUDA));
    dim3 blockDim(8, 4, 2), gridDim((nx + 7) / 8, DIVUP(ny, 4), DIVUP(nz, 2));
    index_kernel<<<gridDim, blockDim>>>(out.data_ptr<int>(), nx, ny, nz);
    return out;
}

// Device functions and macros that read the index -----------------------------------------------------------------------
__device__ __forceinline__ int my_id() { return blockIdx.x * blockDim.x + threadIdx.x; }
__device__ int id_by_macro() { return GLOBAL_ID; }
struct Indexer {
    int base;
    __device__ int operator()() const { return base + threadIdx.x; }
    __host__ __device__ static int twice(int x) { return 2 * x; }
};
__global__ void device_index_kernel(int* out, int n) {
    if (my_id() < n) out[my_id()] = id_by_macro() + Indexer{7}() + Indexer::twice(3);
}
torch::Tensor device_index(int64_t n) {
    auto out = torch::zeros({n}, torch::dtype(torch::kInt).device(torch::kCUDA));
    device_index_kernel<<<(n + 63) / 64, 64>>>(out.data_ptr<int>(), n);
    return out;
}

// Tiled matrix product: static shared memory, barriers in a loop --------------------------------------------------------
template <typename T, int BLOCK = TILE>
__global__ void __launch_bounds__(BLOCK * BLOCK) matmul_kernel(const T* __restrict__ A, const T* __restrict__ B, T* __restrict__ C, int M, int N, int K) {
    __shared__ T As[BLOCK][BLOCK];
    __shared__ T Bs[BLOCK][BLOCK + 1];
    const int row = blockIdx.y * BLOCK + threadIdx.y, col = blockIdx.x * BLOCK + threadIdx.x;
    T sum = 0;
    for (int t = 0; t < (K + BLOCK - 1) / BLOCK; ++t) {
        As[threadIdx.y][threadIdx.x] = row < M && t * BLOCK + threadIdx.x < K ? A[row * K + t * BLOCK + threadIdx.x] : T(0);
        Bs[threadIdx.y][threadIdx.x] = col < N && t * BLOCK + threadIdx.y < K ? B[(t * BLOCK + threadIdx.y) * N + col] : T(0);
        __syncthreads();
        #pragma unroll
        for (int k = 0; k < BLOCK; ++k) sum += As[threadIdx.y][k] * Bs[k][threadIdx.x];
        __syncthreads();
    }
    if (row < M && col < N) C[row * N + col] = sum;
}
torch::Tensor matmul(torch::Tensor a, torch::Tensor b) {
    CHECK_INPUT(a);
    CHECK_INPUT(b);
    const at::cuda::OptionalCUDAGuard guard(device_of(a));
    int M = a.size(0), K = a.size(1), N = b.size(1);
    auto c = torch::empty({M, N}, a.options());
    const dim3 threads(TILE, TILE);
    const dim3 blocks((N + TILE - 1) / TILE, (M + TILE - 1) / TILE);
    AT_DISPATCH_FLOATING_TYPES(a.scalar_type(), "matmul", ([&] {
        matmul_kernel<scalar_t><<<blocks, threads, 0, at::cuda::getCurrentCUDAStream()>>>(
            a.data_ptr<scalar_t>(), b.data_ptr<scalar_t>(), c.data_ptr<scalar_t>(), M, N, K);
    }));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return c;
}

// Dynamic shared memory of several types, at namespace scope and in functions ------------------------------------------
extern __shared__ float scratch[];
__device__ float reduce_scratch(float v) {
    scratch[threadIdx.x] = v;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (threadIdx.x < s) scratch[threadIdx.x] += scratch[threadIdx.x + s];
        __syncthreads();
    }
    return scratch[0];
}
__global__ void row_sum_kernel(const float* x, float* out, int n) {
    float v = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) v += x[blockIdx.x * n + i];
    v = reduce_scratch(v);
    if (threadIdx.x == 0) out[blockIdx.x] = v;
}
template <typename scalar_t>
__global__ void reverse_kernel(const scalar_t* x, scalar_t* out, int n) {
    extern __shared__ __align__(sizeof(double)) unsigned char raw[];
    scalar_t* values = reinterpret_cast<scalar_t*>(raw);
    int* order = (int*)(values + blockDim.x);
    values[threadIdx.x] = x[threadIdx.x];
    order[threadIdx.x] = n - 1 - threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = values[order[threadIdx.x]];
}
torch::Tensor row_sum(torch::Tensor x) {
    auto out = torch::empty({x.size(0)}, x.options());
    row_sum_kernel<<<x.size(0), 128, 128 * sizeof(float)>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.size(1));
    return out;
}
torch::Tensor reversed(torch::Tensor x) {
    auto out = torch::empty_like(x);
    const int n = x.numel();
    AT_DISPATCH_ALL_TYPES_AND2(at::ScalarType::Half, at::ScalarType::BFloat16, x.scalar_type(), "reverse", [&] {
        reverse_kernel<scalar_t><<<1, n, n * (sizeof(scalar_t) + sizeof(int))>>>(x.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), n);
    });
    return out;
}

// Alignment, wherever nvcc takes it --------------------------------------------------------------------------------------
struct __align__(32) Wide { float x; };
struct Narrow { float x; } __align__(32);
__global__ void misaligned_kernel(int64_t* out) {
    __shared__ char shift;
    __shared__ __align__(32) char a[5];
    __shared__ alignas(32) char b[5];
    __shared__ alignas(16) alignas(Wide) char c[5];
    __shared__ char __align__(32) d[5];
    alignas(32) __shared__ char e[5];
    __shared__ char f[5] __align__(32);
    __shared__ Wide g;
    __shared__ Narrow h;
    const void* all[] = {a, b, c, d, e, f, &g, &h};
    shift = 0;
    for (int i = 0; i < 8; ++i) out[i] = (reinterpret_cast<size_t>(all[i]) + shift) % 32;
}
std::vector<int64_t> misaligned() {
    auto out = torch::ones({8}, torch::TensorOptions().dtype(torch::kInt64).device(torch::kCUDA));
    misaligned_kernel<<<1, 1>>>(out.data_ptr<int64_t>());
    out = out.cpu();
    return std::vector<int64_t>(out.data_ptr<int64_t>(), out.data_ptr<int64_t>() + 8);
}

// Constant memory, device variables, symbols ----------------------------------------------------------------------------
__constant__ float coefficients[8];
__constant__ int offset = 3;
__device__ int call_count;
__device__ float table[4] = {1.f, 2.f, 4.f, 8.f};
__global__ void polynomial_kernel(const float* x, float* y, int n, int degree) {
    int i = GLOBAL_ID;
    if (i >= n) return;
    float v = 0;
    for (int d = degree; d >= 0; --d) v = v * x[i] + coefficients[d];
    y[i] = v + offset + table[i % 4];
    if (i == 0) atomicAdd(&call_count, 1);
}
torch::Tensor polynomial(torch::Tensor x, std::vector<double> c) {
    std::vector<float> host(c.begin(), c.end());
    C10_CUDA_CHECK(cudaMemcpyToSymbol(coefficients, host.data(), host.size() * sizeof(float)));
    auto y = torch::empty_like(x);
    polynomial_kernel<<<DIVUP(x.numel(), 256), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel(), (int)c.size() - 1);
    return y;
}
int64_t calls() {
    int value = -1;
    C10_CUDA_CHECK(cudaMemcpyFromSymbol(&value, call_count, sizeof(int)));
    void* address = nullptr;
    cudaGetSymbolAddress(&address, call_count);
    TORCH_CHECK(*(int*)address == value);
    return value;
}

// Overloads, function pointers, launches by address, default arguments, unnamed parameters ------------------------------
__global__ void put(float* out, float v) { out[threadIdx.x] = v; }
__global__ void put(int* out, int v) { out[threadIdx.x] = v + 1; }
template <typename T>
__global__ void put_twice(T* out, T v) { out[threadIdx.x] = 2 * v; }
template <>
__global__ void put_twice<int>(int* out, int v) { out[threadIdx.x] = 20 * v; }
static __global__ void put_default(float* out, int, const int n = 4, float v = 0.5f);
static __global__ void put_default(float* out, int, const int n, float v) { if (threadIdx.x < n) out[threadIdx.x] = v; }
namespace inner { namespace {
template <int N, bool ADD> __global__ void put_n(float* out, float v) {
    if constexpr (ADD) out[threadIdx.x] += N * v; else out[threadIdx.x] = N * v;
}
} }
extern "C" __global__ void put_c(float* out, float v) { out[threadIdx.x] = -v; }
torch::Tensor launches() {
    auto f = torch::zeros({10, 4}, torch::device(torch::kCUDA));
    auto i = torch::zeros({2, 4}, torch::dtype(torch::kInt).device(at::kCUDA));
    float* p = f.data_ptr<float>();
    int* q = i.data_ptr<int>();
    put<<<1, 4>>>(p, 1.0f);
    put<<<1, 4>>>(q, 1);
    put_twice<float><<<1, 4>>>(p + 4, 1.0f);
    put_twice<<<1, 4>>>(q + 4, 1);
    put_default<<<1, 4>>>(p + 8, 0);
    put_default<<<1>>>(p + 36, 0);  // CUDA 13: a block of one thread
    inner::put_n<3, false><<<dim3(1), dim3(4)>>>(p + 12, 1.0f);
    inner::put_n<3, true><<<1, dim3(4, 1, 1), 0, 0>>>(p + 12, 2.0f);
    put_c<<<1, 4>>>(p + 16, 1.0f);
    void (*kernel)(float*, float) = i.numel() > 0 ? put_twice<float> : put_c;
    kernel<<<1, 4>>>(p + 20, 5.0f);
    float* target = p + 24;
    float value = 9.0f;
    void* arguments[] = {&target, &value};
    C10_CUDA_CHECK(cudaLaunchKernel((const void*)put_twice<float>, dim3(1), dim3(4), arguments, 0, 0));
    target = p + 28;
    C10_CUDA_CHECK(cudaLaunchKernel((void*)put_c, dim3(1), dim3(4), arguments, 0, nullptr));
    cudaLaunchConfig_t config = {};
    config.gridDim = 1;
    config.blockDim = 4;
    target = p + 32;
    cudaLaunchKernelEx(&config, put_c, target, 2.5f);
    return torch::cat({f.flatten(), i.flatten().to(torch::kFloat)});
}

// Refused launches leave an error behind and run nothing ----------------------------------------------------------------
__global__ void __launch_bounds__(128) bounded_kernel(float* out) { out[0] = 1; }
__global__ void big_shared_kernel(float* out) {
    extern __shared__ float buffer[];
    buffer[threadIdx.x] = 1;
    __syncthreads();
    out[0] = buffer[0];
}
std::vector<int64_t> refusals() {
    auto x = torch::zeros({1}, torch::device(torch::kCUDA));
    float* p = x.data_ptr<float>();
    std::vector<int64_t> errors;
    put_c<<<1, 1025>>>(p, 1);
    errors.push_back(cudaGetLastError());
    put_c<<<1, 0>>>(p, 1);
    errors.push_back(cudaGetLastError());
    put_c<<<0, 1>>>(p, 1);
    errors.push_back(cudaPeekAtLastError());
    errors.push_back(cudaGetLastError());
    put_c<<<dim3(1, 65536), 1>>>(p, 1);
    errors.push_back(cudaGetLastError());
    put_c<<<1, dim3(1, 1, 65)>>>(p, 1);
    errors.push_back(cudaGetLastError());
    bounded_kernel<<<1, 256>>>(p);
    errors.push_back(cudaGetLastError());
    big_shared_kernel<<<1, 32, 64 * 1024>>>(p);
    errors.push_back(cudaGetLastError());
    errors.push_back((int64_t)x.sum().item<float>());
    cudaFuncSetAttribute(big_shared_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 96 * 1024);
    big_shared_kernel<<<1, 32, 64 * 1024>>>(p);
    errors.push_back(cudaGetLastError());
    errors.push_back((int64_t)x.item<float>());
    errors.push_back(cudaFuncSetAttribute(big_shared_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 300 * 1024));
    errors.push_back(cudaGetLastError() == cudaErrorInvalidValue);
    errors.push_back(cudaGetLastError());
    return errors;
}

// Runtime API -----------------------------------------------------------------------------------------------------------
torch::Tensor runtime_api(torch::Tensor x) {
    float *a = nullptr, *b = nullptr, *pinned = nullptr;
    const size_t bytes = x.numel() * sizeof(float);
    cudaStream_t stream;
    cudaEvent_t start, stop;
    C10_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    C10_CUDA_CHECK(cudaEventCreate(&start));
    C10_CUDA_CHECK(cudaEventCreateWithFlags(&stop, cudaEventDisableTiming));
    C10_CUDA_CHECK(cudaMalloc(&a, bytes));
    C10_CUDA_CHECK(cudaMallocAsync((void**)&b, bytes, stream));
    C10_CUDA_CHECK(cudaMallocHost(&pinned, bytes));
    cudaEventRecord(start, stream);
    C10_CUDA_CHECK(cudaMemcpy(a, x.data_ptr<float>(), bytes, cudaMemcpyDeviceToDevice));
    C10_CUDA_CHECK(cudaMemcpyAsync(b, a, bytes, cudaMemcpyDeviceToDevice, stream));
    C10_CUDA_CHECK(cudaMemsetAsync(b, 0, bytes / 2, stream));
    C10_CUDA_CHECK(cudaMemcpyAsync(pinned, b, bytes, cudaMemcpyDeviceToHost, stream));
    cudaEventRecord(stop, stream);
    C10_CUDA_CHECK(cudaStreamSynchronize(stream));
    float ms = -1;
    C10_CUDA_CHECK(cudaEventElapsedTime(&ms, start, stop));
    TORCH_CHECK(ms >= 0 && ms < 10000);
    auto out = torch::empty_like(x);
    memcpy(out.data_ptr<float>(), pinned, bytes);
    C10_CUDA_CHECK(cudaFree(a));
    C10_CUDA_CHECK(cudaFreeAsync(b, stream));
    C10_CUDA_CHECK(cudaFreeHost(pinned));
    TORCH_CHECK(cudaFree((void*)0x1234) == cudaErrorInvalidValue);
    TORCH_CHECK(cudaGetLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaSuccess);
    cudaDeviceProp prop;
    int device = -1, sms = 0, blocks = 0, grid = 0, block = 0;
    cudaGetDevice(&device);
    C10_CUDA_CHECK(cudaGetDeviceProperties(&prop, device));
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    TORCH_CHECK(device == 0 && prop.warpSize == 32 && sms == prop.multiProcessorCount && sms == at::cuda::getCurrentDeviceProperties()->multiProcessorCount);
    C10_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, put_c, 256, 0));
    C10_CUDA_CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, put_twice<float>, 0, 0));
    TORCH_CHECK(blocks == 8 && block > 0 && grid > 0);
    cudaStreamDestroy(stream);
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    return out;
}

// Questions about the device --------------------------------------------------------------------------------------------
std::vector<int64_t> device_answers(torch::Tensor x) {
    const c10::cuda::CUDAGuard guard(x.device());
    auto options = torch::TensorOptions().dtype(x.dtype()).device(torch::Device("cuda:0"));
    auto y = torch::zeros({2}, options).cuda();
    auto z = x.to(torch::kCUDA).to(torch::Device(torch::kCUDA, 0));
    return {x.is_cuda(), x.device().is_cuda(), x.device().type() == torch::kCUDA, x.device() == y.device(), x.is_cpu(),
            x.get_device(), x.device().index(), z.is_cuda(), torch::cuda::is_available(), at::cuda::is_available(),
            (int64_t)torch::cuda::device_count(), x.options().device() == y.options().device(), x.type().is_cuda(),
            c10::DeviceType::CUDA == y.device().type()};
}

// Faults ------------------------------------------------------------------------------------------------------------------
__global__ void assert_kernel(const float* x, int n) {
    int i = threadIdx.x;
    assert(i < n && "index in range");
    if (x[i] < 0) __trap();
}
void asserted(torch::Tensor x, int64_t threads) { assert_kernel<<<1, threads>>>(x.data_ptr<float>(), x.numel()); }
__global__ void deadlock_kernel(int* out) {
    if (threadIdx.x < 16) {
        out[threadIdx.x] = __shfl_sync(0xffffffff, (int)threadIdx.x, 0);
    } else {
        __syncthreads();
    }
}
void deadlocked(torch::Tensor out) { deadlock_kernel<<<1, 32>>>(out.data_ptr<int>()); }
// Exited threads do not hold up a barrier, on the hardware or here.
__global__ void early_exit_kernel(const float* x, float* out, int n) {
    __shared__ float total;
    if (threadIdx.x >= n) return;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    atomicAdd(&total, x[threadIdx.x]);
    __syncthreads();
    out[threadIdx.x] = total;
}
torch::Tensor early_exit(torch::Tensor x) {
    auto out = torch::empty_like(x);
    early_exit_kernel<<<1, 256>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.numel());
    return out;
}

// Lambdas and functors as kernel arguments ------------------------------------------------------------------------------
template <typename F>
__global__ void apply_kernel(float* x, int n, F f) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) x[i] = f(x[i]);
}
struct Scale {
    float a;
    __device__ __forceinline__ float operator()(float x) const { return a * x; }
};
torch::Tensor applied(torch::Tensor x, double shift) {
    auto y = x.clone();
    const float s = shift;
    apply_kernel<<<4, 64>>>(y.data_ptr<float>(), (int)y.numel(), [=] __device__(float v) { return v + s; });
    apply_kernel<<<4, 64>>>(y.data_ptr<float>(), (int)y.numel(), Scale{3.0f});
    return y;
}
template <typename... Ts>
__global__ void sum_pack_kernel(float* out, Ts... xs) { out[threadIdx.x] = (xs + ... + 0.0f); }
torch::Tensor packed_sum() {
    auto out = torch::zeros({2}, torch::device(torch::kCUDA));
    sum_pack_kernel<<<1, 2>>>(out.data_ptr<float>(), 1, 2.5f, 3.0);
    return out;
}

// Tensor accessors, vector types, structs by value ----------------------------------------------------------------------
struct Params { int n; float4 scale; };
__global__ void accessor_kernel(const torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> x,
                                torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> y, const Params p) {
    const int r = blockIdx.x, c = threadIdx.x;
    if (c < p.n) y[r][c] = x[r][c] * (&p.scale.x)[c % 4];
}
torch::Tensor accessed(torch::Tensor x) {
    auto y = torch::empty_like(x);
    Params p{(int)x.size(1), make_float4(1, 2, 3, 4)};
    accessor_kernel<<<x.size(0), 64>>>(x.packed_accessor32<float, 2, torch::RestrictPtrTraits>(), y.packed_accessor32<float, 2, torch::RestrictPtrTraits>(), p);
    return y;
}
__global__ void vector_kernel(const float4* x, float4* y, uchar4* bytes, int n) {
    int i = GLOBAL_ID;
    if (i >= n) return;
    float4 v = __ldg(&x[i]);
    __stcs(&y[i], v);
    v = __ldcg(&y[i]);
    v.y += 0 * (__ldca(&v.x) + __ldg(reinterpret_cast<const unsigned char*>(x)));
    (void)__ldg(reinterpret_cast<const __half*>(x) + i);
    float2 lo = make_float2(v.x, v.y);
    int2 whole = make_int2((int)v.z, (int)v.w);
    y[i] = make_float4(lo.y, lo.x, whole.x, whole.y);
    bytes[i] = make_uchar4(i, i + 1, i + 2, i + 3);
}
std::vector<torch::Tensor> vectors(torch::Tensor x) {
    auto y = torch::empty_like(x);
    const int n = x.numel() / 4;
    auto b = torch::empty({n, 4}, x.options().dtype(torch::kByte));
    vector_kernel<<<DIVUP(n, 32), 32>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()), reinterpret_cast<float4*>(y.data_ptr<float>()),
                                        reinterpret_cast<uchar4*>(b.data_ptr<uint8_t>()), n);
    return {y, b};
}

// A kernel made by a macro, conditional code, launches inside a macro ---------------------------------------------------
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 600
#error "not this old"
#endif
#define LAUNCH(kernel, n, ...) kernel<<<DIVUP(n, 128), 128>>>(__VA_ARGS__)
__global__ void arch_kernel(int* out, int n) {
    int i = GLOBAL_ID;
    if (i < n) {
#ifdef __CUDA_ARCH__
        out[i] = i;
#else
        out[i] = -1;
#endif
    }
}
torch::Tensor arch(int64_t n) {
    auto out = torch::empty({n}, torch::dtype(torch::kInt32).device(torch::kCUDA));
    LAUNCH(arch_kernel, n, out.data_ptr<int>(), n);
    return out;
}
