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
DICE_CPU_SMALL_NAMED(__half, __half2, half)
#ifndef __CUDA_NO_HALF_OPERATORS__
DICE_CPU_SMALL_OPERATORS(__half)
#endif
#ifndef __CUDA_NO_HALF2_OPERATORS__
DICE_CPU_SMALL_OPERATORS2(__half2)
#endif

#pragma GCC visibility pop
