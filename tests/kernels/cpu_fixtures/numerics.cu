// Arithmetic: math functions, intrinsics, half and bfloat16, conversions, integer and packed operations, random numbers.
#include <torch/extension.h>
#include <ATen/AccumulateType.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <math_constants.h>
#include <curand_kernel.h>
#include <device_launch_parameters.h>
#include <cmath>
#include <limits>

#define ROW(k) out[(k) * n + i]
__global__ void float_kernel(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float v = x[i], p = fabsf(v) + 0.1f;
    ROW(0) = __expf(v);
    ROW(1) = __logf(p);
    ROW(2) = rsqrtf(p);
    ROW(3) = __fdividef(v, p);
    ROW(4) = __saturatef(v);
    ROW(5) = erff(v) + erfcf(v) + erfinvf(tanhf(v) * 0.99f);
    ROW(6) = normcdff(v);
    ROW(7) = __powf(p, 1.5f) + powf(p, 2.0f) + pow(p, 2);
    ROW(8) = fmaf(v, p, 1.0f) + __fmaf_rn(v, p, 1.0f) + fma((double)v, 1.0, 0.0);
    ROW(9) = sinpif(v) + cospif(v);
    float s, c;
    sincosf(v, &s, &c);
    ROW(10) = s * s + c * c + __sinf(v) + __cosf(v);
    ROW(11) = max(v, 0.0f) + min(v, 1.0) + fmaxf(v, -1.f) + fminf(v, 2.f);
    ROW(12) = __frcp_rn(p) + __fsqrt_rn(p) + __fadd_rn(v, p) + __fmul_rn(v, p) + __frsqrt_rn(p);
    ROW(13) = cbrtf(v) + rcbrtf(p) + hypotf(v, 1.f) + rhypotf(v, 1.f) + norm3df(v, 1.f, 1.f);
    ROW(14) = exp10f(v * 0.1f) + exp2f(v) + expm1f(v) + log1pf(p) + log2f(p) + log10f(p) + __log2f(p) + __exp10f(0.f);
    ROW(15) = copysignf(2.f, v) + truncf(v) + rintf(v) + roundf(v) + floorf(v) + ceilf(v) + nearbyintf(v) + fmodf(v, 0.7f);
    ROW(16) = isnan(v) + isinf(v) + isfinite(v) + signbit(v);
    ROW(17) = __int_as_float(__float_as_int(v) & 0x7fffffff) + __uint_as_float(__float_as_uint(v));
    ROW(18) = lgammaf(p) + tgammaf(p) + j0f(v) + y0f(p) + cyl_bessel_i0f(v) + erfcxf(v);
    ROW(19) = abs(v) + fabs(v) + abs((int)v) + std::abs(v) + ::fabs((double)v);
    ROW(20) = exp(v) + log(p) + sqrt(p) + tanh(v) + sin(v) + std::exp(v) + std::max(v, 0.f);
    ROW(21) = CUDART_PI_F + CUDART_INF_F * 0.f + M_PI + FLT_MAX * 0.f + INFINITY * 0.f + std::numeric_limits<float>::lowest() * 0.f;
}
torch::Tensor floats(torch::Tensor x) {
    const int n = x.numel();
    auto out = torch::empty({22, n}, x.options());
    float_kernel<<<(n + 127) / 128, 128>>>(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}

__global__ void rounding_kernel(const float* x, int* out, int n) {
    const int i = threadIdx.x;
    if (i >= n) return;
    const float v = x[i];
    ROW(0) = __float2int_rn(v);
    ROW(1) = __float2int_rz(v);
    ROW(2) = __float2int_rd(v);
    ROW(3) = __float2int_ru(v);
    ROW(4) = (int)__float2uint_rn(v);
    ROW(5) = (int)(__float2ll_rn(v) >> 1);
    ROW(6) = __double2int_rn((double)v);
    ROW(7) = __fadd_ru(1.0f, 1e-10f) > 1.0f;
    ROW(8) = __fadd_rd(1.0f, -1e-10f) < 1.0f;
    ROW(9) = __fadd_rz(1.0f, 1e-10f) == 1.0f;
    ROW(10) = __fdiv_ru(1.0f, 3.0f) > __fdiv_rd(1.0f, 3.0f);
    ROW(11) = __float2int_rn(__int2float_rn(i) + __uint2float_rz(7u));
    ROW(12) = __float_as_int(v);
}
torch::Tensor rounding(torch::Tensor x) {
    const int n = x.numel();
    auto out = torch::empty({13, n}, x.options().dtype(torch::kInt));
    rounding_kernel<<<1, n>>>(x.data_ptr<float>(), out.data_ptr<int>(), n);
    return out;
}

__global__ void integer_kernel(const int* x, int* out, int n) {
    const int i = threadIdx.x;
    if (i >= n) return;
    const int v = x[i];
    ROW(0) = __clz(v);
    ROW(1) = __popc(v);
    ROW(2) = __ffs(v);
    ROW(3) = (int)__brev(v);
    ROW(4) = __clzll((long long)v) + __popcll((unsigned long long)(unsigned)v) + __ffsll(v);
    ROW(5) = (int)__byte_perm(v, 0x01020304, 0x5140);
    ROW(6) = __mul24(v & 0xffff, 3) + (int)__umulhi((unsigned)v, 1000u) + __mulhi(v, 1000);
    ROW(7) = (int)__funnelshift_l(v, 0xabcdef01, 8);
    ROW(8) = (int)__vadd4(v, 0x01010101) ^ (int)__vmaxu4(v, 0x20202020) ^ (int)__vabsdiffu4(v, 0x11111111);
    ROW(9) = __dp4a(v, 0x01020304, 5);
    ROW(10) = __sad(v, 10, 3u) + __hadd(v, 4) + __rhadd(v, 5);
    ROW(11) = min(v, 3) + max(v, 3u) * 0 + (int)max(7LL, (long long)v) + (int)min(5l, (long)v);
    ROW(12) = (int)(__umul64hi(1ull << 63, (unsigned long long)(unsigned)v));
    ROW(13) = (int)__vcmpeq2(v, v) + (int)__vsetltu4(v, 0xffffffff);
}
torch::Tensor integers(torch::Tensor x) {
    const int n = x.numel();
    auto out = torch::empty({14, n}, x.options());
    integer_kernel<<<1, n>>>(x.data_ptr<int>(), out.data_ptr<int>(), n);
    return out;
}

__global__ void half_kernel(const __half* x, const __half* y, __half* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const __half a = x[i], b = y[i];
    ROW(0) = __hadd(a, b);
    ROW(1) = __hmul(a, b);
    ROW(2) = __hfma(a, b, __float2half(0.5f));
    ROW(3) = __hdiv(a, b);
    ROW(4) = __hsub(a, b);
    ROW(5) = __hgt(a, b) ? a : b;
    ROW(6) = hexp(a);
    ROW(7) = hsqrt(__habs(a));
    ROW(8) = __hmax(a, b);
    ROW(9) = __hneg(a);
    ROW(10) = __float2half(__half2float(a) + 1.0f);
    ROW(11) = __int2half_rn(__half2int_rz(a) + 2);
    const half2 p = __halves2half2(a, b), q = __float2half2_rn(2.0f);
    const half2 r = __hfma2(p, q, __hadd2(p, p));
    ROW(12) = __low2half(r);
    ROW(13) = __high2half(r);
    const float2 f = __half22float2(__hmul2(p, q));
    ROW(14) = __float2half(f.x + f.y);
    ROW(15) = __float2half(__hbgt2(p, q) + 2 * __hisnan(a) + 4 * (__half_as_ushort(a) >> 15));
    ROW(16) = htanh(a);
    ROW(17) = __ushort_as_half(__half_as_ushort(a));
}
torch::Tensor halves(torch::Tensor x, torch::Tensor y) {
    const int n = x.numel();
    auto out = torch::empty({18, n}, x.options());
    half_kernel<<<(n + 63) / 64, 64>>>(reinterpret_cast<const __half*>(x.data_ptr<at::Half>()), reinterpret_cast<__half*>(y.data_ptr<at::Half>()),
                                       reinterpret_cast<half*>(out.data_ptr<at::Half>()), n);
    return out;
}
__global__ void bfloat_kernel(const __nv_bfloat16* x, const __nv_bfloat16* y, __nv_bfloat16* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const __nv_bfloat16 a = x[i], b = y[i];
    ROW(0) = __hadd(a, b);
    ROW(1) = a * b;
    ROW(2) = __hfma(a, b, a);
    ROW(3) = __float2bfloat16(__bfloat162float(a) * 3.0f);
    ROW(4) = a > b ? a : b;
    const __nv_bfloat162 p = __halves2bfloat162(a, b);
    ROW(5) = __low2bfloat16(__hadd2(p, p));
    ROW(6) = hexp(a);
}
torch::Tensor bfloats(torch::Tensor x, torch::Tensor y) {
    const int n = x.numel();
    auto out = torch::empty({7, n}, x.options());
    bfloat_kernel<<<(n + 63) / 64, 64>>>(reinterpret_cast<const __nv_bfloat16*>(x.data_ptr()), reinterpret_cast<const __nv_bfloat16*>(y.data_ptr()),
                                         reinterpret_cast<__nv_bfloat16*>(out.data_ptr<at::BFloat16>()), n);
    return out;
}
// c10's own types in a template, and in dispatch.
template <typename scalar_t>
__global__ void gelu_kernel(const scalar_t* __restrict__ x, scalar_t* __restrict__ y, int64_t n) {
    using acc_t = at::acc_type<scalar_t, true>;
    const int64_t stride = (int64_t)blockDim.x * gridDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
        const acc_t v = static_cast<acc_t>(x[i]);
        y[i] = static_cast<scalar_t>(acc_t(0.5) * v * (acc_t(1) + ::erf(v * acc_t(M_SQRT1_2))));
    }
}
torch::Tensor gelu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "gelu", [&] {
        gelu_kernel<scalar_t><<<8, 64>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.numel());
    });
    return y;
}

__global__ void random_kernel(float* out, int n, unsigned long long seed) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    curandState state;
    curand_init(seed, i, 0, &state);
    ROW(0) = curand_uniform(&state);
    ROW(1) = curand_normal(&state);
    curandStatePhilox4_32_10_t philox;
    curand_init(seed, i, 0, &philox);
    ROW(2) = curand_uniform4(&philox).z;
    ROW(3) = curand_normal(&philox);
}
torch::Tensor randoms(int64_t n, int64_t seed) {
    auto out = torch::empty({4, n}, torch::device(torch::kCUDA));
    random_kernel<<<(n + 255) / 256, 256>>>(out.data_ptr<float>(), n, seed);
    return out;
}
__global__ void philox_kernel(int* out) {
    curandStatePhilox4_32_10_t state;
    curand_init(0, 0, 0, &state);
    for (int i = 0; i < 4; ++i) out[i] = (int)curand(&state);
}
torch::Tensor philox() {
    auto out = torch::empty({4}, torch::dtype(torch::kInt).device(torch::kCUDA));
    philox_kernel<<<1, 1>>>(out.data_ptr<int>());
    return out;
}

__global__ void ptx_kernel(const float* x, float* out, int n) {
    const int i = threadIdx.x;
    if (i >= n) return;
    float r, t;
    unsigned lane;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x[i]));
    asm volatile("{ tanh.approx.f32 %0, %1; }" : "=f"(t) : "f"(x[i]));
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    float g;
    asm volatile("ld.global.nc.L1::no_allocate.f32 %0, [%1];\n" : "=f"(g) : "l"(x + i));
    asm volatile("st.global.f32 [%0], %1;" :: "l"(out + i), "f"(r + t + (float)lane + g) : "memory");
}
torch::Tensor ptx(torch::Tensor x) {
    auto out = torch::empty_like(x);
    ptx_kernel<<<1, x.numel()>>>(x.data_ptr<float>(), out.data_ptr<float>(), x.numel());
    return out;
}
