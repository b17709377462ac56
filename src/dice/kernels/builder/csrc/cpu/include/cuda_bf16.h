// __nv_bfloat16 and __nv_bfloat162.
#pragma once

#include <c10/util/BFloat16.h>

#include "cuda_runtime_api.h"
#include "dice_cpu/small_float.h"

#pragma GCC visibility push(hidden)

struct __nv_bfloat16_raw { unsigned short x; };
struct __nv_bfloat162_raw { unsigned short x, y; };
struct __nv_bfloat16;
DICE_CPU_INLINE float wide(__nv_bfloat16 x);
namespace dice_cpu {
template <>
inline __nv_bfloat16 narrow<__nv_bfloat16>(float value);
}

struct __nv_bfloat16 {
    unsigned short __x;
    __nv_bfloat16() = default;
    constexpr __nv_bfloat16(const __nv_bfloat16_raw& raw) : __x(raw.x) {}
    __nv_bfloat16(const c10::BFloat16& x) : __x(x.x) {}
    operator c10::BFloat16() const { return c10::BFloat16(__x, c10::BFloat16::from_bits()); }
    operator __nv_bfloat16_raw() const { return {__x}; }
#ifndef __CUDA_NO_BFLOAT16_CONVERSIONS__
    DICE_CPU_SMALL_CONVERSIONS(__nv_bfloat16)
#endif
};
DICE_CPU_INLINE float wide(__nv_bfloat16 x) { return c10::detail::f32_from_bits(x.__x); }
namespace dice_cpu {
template <>
inline __nv_bfloat16 narrow<__nv_bfloat16>(float value) { return __nv_bfloat16_raw{c10::detail::round_to_nearest_even(value)}; }
}  // namespace dice_cpu

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
    __nv_bfloat162() = default;
    constexpr __nv_bfloat162(const __nv_bfloat16& a, const __nv_bfloat16& b) : x(a), y(b) {}
    constexpr __nv_bfloat162(const __nv_bfloat162_raw& raw) : x(__nv_bfloat16_raw{raw.x}), y(__nv_bfloat16_raw{raw.y}) {}
};
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

DICE_CPU_SMALL_FLOAT(__nv_bfloat16, __nv_bfloat162)
DICE_CPU_SMALL_INTEGERS(__nv_bfloat16, bfloat16)
#ifndef __CUDA_NO_BFLOAT16_OPERATORS__
DICE_CPU_SMALL_OPERATORS(__nv_bfloat16)
#endif
#ifndef __CUDA_NO_BFLOAT162_OPERATORS__
DICE_CPU_SMALL_OPERATORS2(__nv_bfloat162)
#endif

DICE_CPU_INLINE float __bfloat162float(__nv_bfloat16 x) { return wide(x); }
DICE_CPU_INLINE __nv_bfloat16 __float2bfloat16(float x) { return dice_cpu::narrow<__nv_bfloat16>(x); }
DICE_CPU_INLINE __nv_bfloat16 __float2bfloat16_rn(float x) { return dice_cpu::narrow<__nv_bfloat16>(x); }
DICE_CPU_INLINE __nv_bfloat16 __float2bfloat16_rz(float x) { return dice_cpu::narrow_towards<__nv_bfloat16, 'z'>(x); }
DICE_CPU_INLINE __nv_bfloat16 __float2bfloat16_rd(float x) { return dice_cpu::narrow_towards<__nv_bfloat16, 'd'>(x); }
DICE_CPU_INLINE __nv_bfloat16 __float2bfloat16_ru(float x) { return dice_cpu::narrow_towards<__nv_bfloat16, 'u'>(x); }
DICE_CPU_INLINE __nv_bfloat16 __double2bfloat16(double x) { return dice_cpu::narrow<__nv_bfloat16>(static_cast<float>(x)); }
DICE_CPU_INLINE __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
DICE_CPU_INLINE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
DICE_CPU_INLINE __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return {x, x}; }
DICE_CPU_INLINE __nv_bfloat162 __float2bfloat162_rn(float x) { return {__float2bfloat16(x), __float2bfloat16(x)}; }
DICE_CPU_INLINE __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__float2bfloat16(x), __float2bfloat16(y)}; }
DICE_CPU_INLINE __nv_bfloat162 __float22bfloat162_rn(float2 v) { return {__float2bfloat16(v.x), __float2bfloat16(v.y)}; }
DICE_CPU_INLINE float2 __bfloat1622float2(__nv_bfloat162 v) { return {wide(v.x), wide(v.y)}; }
DICE_CPU_INLINE __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
DICE_CPU_INLINE __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
DICE_CPU_INLINE __nv_bfloat162 __low2bfloat162(__nv_bfloat162 v) { return {v.x, v.x}; }
DICE_CPU_INLINE __nv_bfloat162 __high2bfloat162(__nv_bfloat162 v) { return {v.y, v.y}; }
DICE_CPU_INLINE __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return {a.x, b.x}; }
DICE_CPU_INLINE __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return {a.y, b.y}; }
DICE_CPU_INLINE short __bfloat16_as_short(__nv_bfloat16 x) { return static_cast<short>(x.__x); }
DICE_CPU_INLINE unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.__x; }
DICE_CPU_INLINE __nv_bfloat16 __short_as_bfloat16(short x) { return __nv_bfloat16_raw{static_cast<unsigned short>(x)}; }
DICE_CPU_INLINE __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) { return __nv_bfloat16_raw{x}; }

#pragma GCC visibility pop
