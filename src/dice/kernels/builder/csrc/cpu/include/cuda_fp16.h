// __half and __half2. As in CUDA, the conversions and operators can be switched off by macros, and PyTorch's builds do.
#pragma once

#include <c10/util/Half.h>

#include "cuda_runtime_api.h"
#include "dice_cpu/small_float.h"

#pragma GCC visibility push(hidden)

struct __half_raw { unsigned short x; };
struct __half2_raw { unsigned short x, y; };
struct __half;
DICE_CPU_INLINE float wide(__half x);
namespace dice_cpu {
template <>
inline __half narrow<__half>(float value);
}

struct __half {
    unsigned short __x;
    __half() = default;
    constexpr __half(const __half_raw& raw) : __x(raw.x) {}
    __half(const c10::Half& x) : __x(x.x) {}
    operator c10::Half() const { return c10::Half(__x, c10::Half::from_bits()); }
    operator __half_raw() const { return {__x}; }
#ifndef __CUDA_NO_HALF_CONVERSIONS__
    DICE_CPU_SMALL_CONVERSIONS(__half)
#endif
};
DICE_CPU_INLINE float wide(__half x) { return c10::detail::fp16_ieee_to_fp32_value(x.__x); }
namespace dice_cpu {
template <>
inline __half narrow<__half>(float value) { return __half_raw{c10::detail::fp16_ieee_from_fp32_value(value)}; }
}  // namespace dice_cpu

struct alignas(4) __half2 {
    __half x, y;
    __half2() = default;
    constexpr __half2(const __half& a, const __half& b) : x(a), y(b) {}
    constexpr __half2(const __half2_raw& raw) : x(__half_raw{raw.x}), y(__half_raw{raw.y}) {}
};
typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;
typedef __half2 __nv_half2;

DICE_CPU_SMALL_FLOAT(__half, __half2)
DICE_CPU_SMALL_INTEGERS(__half, half)
#ifndef __CUDA_NO_HALF_OPERATORS__
DICE_CPU_SMALL_OPERATORS(__half)
#endif
#ifndef __CUDA_NO_HALF2_OPERATORS__
DICE_CPU_SMALL_OPERATORS2(__half2)
#endif

DICE_CPU_INLINE float __half2float(__half x) { return wide(x); }
DICE_CPU_INLINE __half __float2half(float x) { return dice_cpu::narrow<__half>(x); }
DICE_CPU_INLINE __half __float2half_rn(float x) { return dice_cpu::narrow<__half>(x); }
DICE_CPU_INLINE __half __float2half_rz(float x) { return dice_cpu::narrow_towards<__half, 'z'>(x); }
DICE_CPU_INLINE __half __float2half_rd(float x) { return dice_cpu::narrow_towards<__half, 'd'>(x); }
DICE_CPU_INLINE __half __float2half_ru(float x) { return dice_cpu::narrow_towards<__half, 'u'>(x); }
DICE_CPU_INLINE __half __double2half(double x) { return dice_cpu::narrow<__half>(static_cast<float>(x)); }
DICE_CPU_INLINE __half2 make_half2(__half x, __half y) { return {x, y}; }
DICE_CPU_INLINE __half2 __halves2half2(__half x, __half y) { return {x, y}; }
DICE_CPU_INLINE __half2 __half2half2(__half x) { return {x, x}; }
DICE_CPU_INLINE __half2 __float2half2_rn(float x) { return {__float2half(x), __float2half(x)}; }
DICE_CPU_INLINE __half2 __floats2half2_rn(float x, float y) { return {__float2half(x), __float2half(y)}; }
DICE_CPU_INLINE __half2 __float22half2_rn(float2 v) { return {__float2half(v.x), __float2half(v.y)}; }
DICE_CPU_INLINE float2 __half22float2(__half2 v) { return {wide(v.x), wide(v.y)}; }
DICE_CPU_INLINE __half __low2half(__half2 v) { return v.x; }
DICE_CPU_INLINE __half __high2half(__half2 v) { return v.y; }
DICE_CPU_INLINE __half2 __low2half2(__half2 v) { return {v.x, v.x}; }
DICE_CPU_INLINE __half2 __high2half2(__half2 v) { return {v.y, v.y}; }
DICE_CPU_INLINE __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
DICE_CPU_INLINE __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }
DICE_CPU_INLINE short __half_as_short(__half x) { return static_cast<short>(x.__x); }
DICE_CPU_INLINE unsigned short __half_as_ushort(__half x) { return x.__x; }
DICE_CPU_INLINE __half __short_as_half(short x) { return __half_raw{static_cast<unsigned short>(x)}; }
DICE_CPU_INLINE __half __ushort_as_half(unsigned short x) { return __half_raw{x}; }

#pragma GCC visibility pop
