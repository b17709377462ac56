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
    explicit __nv_bfloat16(const c10::BFloat16& x) : __x(x.x) {}  // as c10 has it: or `a > b` is ambiguous
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
DICE_CPU_SMALL_NAMED(__nv_bfloat16, __nv_bfloat162, bfloat16)
#ifndef __CUDA_NO_BFLOAT16_OPERATORS__
DICE_CPU_SMALL_OPERATORS(__nv_bfloat16)
#endif
#ifndef __CUDA_NO_BFLOAT162_OPERATORS__
DICE_CPU_SMALL_OPERATORS2(__nv_bfloat162)
#endif

#pragma GCC visibility pop
