// Floating-point functions that nvcc provides without an include: CUDA's additions to <math.h>, the fast forms
// (`__expf` is expf here: more exact, same meaning), directed rounding, conversions, min and max with CUDA's overloads.
#pragma once

#include <fenv.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "abi.h"

DICE_CPU_API double dice_cpu_erfinv(double x);
DICE_CPU_API double dice_cpu_erfcinv(double x);
DICE_CPU_API double dice_cpu_erfcx(double x);
DICE_CPU_API double dice_cpu_bessel_i(int order, double x);

namespace dice_cpu {

template <class To, class From>
DICE_CPU_INLINE To bits_to(From value) {
    static_assert(sizeof(To) == sizeof(From));
    To result;
    __builtin_memcpy(&result, &value, sizeof result);
    return result;
}

// Float nearest to `exact` in a direction: down for 'd', up for 'u', to zero for 'z'.
template <char direction, class Exact>
DICE_CPU_INLINE float directed(Exact exact) {
    float value = static_cast<float>(exact);
    if (std::isinf(value) && std::isfinite(exact)) {
        const bool outwards = direction == 'u' ? exact > 0 : direction == 'd' ? exact < 0 : false;
        return outwards ? value : std::copysign(std::numeric_limits<float>::max(), value);
    }
    const bool too_high = value > exact, too_low = value < exact;
    if (too_high && (direction == 'd' || (direction == 'z' && exact > 0))) return nextafterf(value, -INFINITY);
    if (too_low && (direction == 'u' || (direction == 'z' && exact < 0))) return nextafterf(value, INFINITY);
    return value;
}
template <char direction>
DICE_CPU_INLINE double directed_double(long double exact) {
    const double value = static_cast<double>(exact);
    const bool too_high = value > exact, too_low = value < exact;
    if (too_high && (direction == 'd' || (direction == 'z' && exact > 0))) return nextafter(value, -INFINITY);
    if (too_low && (direction == 'u' || (direction == 'z' && exact < 0))) return nextafter(value, INFINITY);
    return value;
}

// Float from which a smaller type rounds as from `exact` itself: what was cut off shows in the last bit, so no tie is made.
template <class Exact>
DICE_CPU_INLINE float between(Exact exact) {
    const float cut = directed<'z'>(exact);
    return cut == exact || exact != exact ? cut : bits_to<float>(bits_to<uint32_t>(cut) | 1);
}
// What holds every number of an arithmetic type.
template <class T>
using Exact = std::conditional_t<std::is_integral_v<T> && sizeof(T) == 8, long double, double>;

// `f(a, b, c)` while the processor rounds in a direction: no wider type holds every sum. The compiler sees neither the
// numbers nor what becomes of the result, so it computes between the changes of direction.
template <char direction, class T, class F>
DICE_CPU_INLINE T rounding(F f, T a, T b = 0, T c = 0) {
    const int before = fegetround();
    fesetround(direction == 'd' ? FE_DOWNWARD : direction == 'u' ? FE_UPWARD : FE_TOWARDZERO);
    asm volatile("" : "+m"(a), "+m"(b), "+m"(c) : : "memory");
    T result = f(a, b, c);
    asm volatile("" : "+m"(result) : : "memory");
    fesetround(before);
    return result;
}

// GPU conversions saturate, and NaN becomes 0 (for 64-bit results the smallest integer, as the hardware does).
template <class Integer, class Float>
DICE_CPU_INLINE Integer saturating(Float rounded) {
    if (rounded != rounded) return sizeof(Integer) == 8 ? static_cast<Integer>(1ull << 63) : 0;
    if (rounded >= static_cast<Float>(std::numeric_limits<Integer>::max())) return std::numeric_limits<Integer>::max();
    if (rounded <= static_cast<Float>(std::numeric_limits<Integer>::min())) return std::numeric_limits<Integer>::min();
    return static_cast<Integer>(rounded);
}

}  // namespace dice_cpu

// min and max: exactly CUDA's overloads, so that what is ambiguous there is ambiguous here.
#define DICE_CPU_MINMAX(result, a_type, b_type)                                                                   \
    DICE_CPU_INLINE constexpr result min(const a_type a, const b_type b) {                                        \
        return static_cast<result>(a) < static_cast<result>(b) ? static_cast<result>(a) : static_cast<result>(b); \
    }                                                                                                             \
    DICE_CPU_INLINE constexpr result max(const a_type a, const b_type b) {                                        \
        return static_cast<result>(a) > static_cast<result>(b) ? static_cast<result>(a) : static_cast<result>(b); \
    }
#define DICE_CPU_MINMAX_SIGNS(type)                      \
    DICE_CPU_MINMAX(type, type, type)                    \
    DICE_CPU_MINMAX(unsigned type, unsigned type, unsigned type) \
    DICE_CPU_MINMAX(unsigned type, type, unsigned type)  \
    DICE_CPU_MINMAX(unsigned type, unsigned type, type)
DICE_CPU_MINMAX_SIGNS(int)
DICE_CPU_MINMAX_SIGNS(long)
DICE_CPU_MINMAX_SIGNS(long long)
#undef DICE_CPU_MINMAX_SIGNS
#undef DICE_CPU_MINMAX
DICE_CPU_INLINE float min(const float a, const float b) { return fminf(a, b); }
DICE_CPU_INLINE float max(const float a, const float b) { return fmaxf(a, b); }
DICE_CPU_INLINE double min(const double a, const double b) { return fmin(a, b); }
DICE_CPU_INLINE double max(const double a, const double b) { return fmax(a, b); }
DICE_CPU_INLINE double min(const float a, const double b) { return fmin(a, b); }
DICE_CPU_INLINE double max(const float a, const double b) { return fmax(a, b); }
DICE_CPU_INLINE double min(const double a, const float b) { return fmin(a, b); }
DICE_CPU_INLINE double max(const double a, const float b) { return fmax(a, b); }
DICE_CPU_INLINE unsigned umin(unsigned a, unsigned b) { return a < b ? a : b; }
DICE_CPU_INLINE unsigned umax(unsigned a, unsigned b) { return a > b ? a : b; }
DICE_CPU_INLINE long long llmin(long long a, long long b) { return a < b ? a : b; }
DICE_CPU_INLINE long long llmax(long long a, long long b) { return a > b ? a : b; }
DICE_CPU_INLINE unsigned long long ullmin(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
DICE_CPU_INLINE unsigned long long ullmax(unsigned long long a, unsigned long long b) { return a > b ? a : b; }

// How to define a function that glibc declares since 2.41, since 2.42. Where it does, the name takes no `static`: this body
// stands in for the libc's.
#define DICE_CPU_IN_LIBC extern "C" inline __attribute__((__gnu_inline__, __always_inline__))
#define DICE_CPU_2_41 DICE_CPU_INLINE
#define DICE_CPU_2_42 DICE_CPU_INLINE
#if defined(__GLIBC__) && defined(__USE_GNU)
#if __GLIBC_PREREQ(2, 41)
#undef DICE_CPU_2_41
#define DICE_CPU_2_41 DICE_CPU_IN_LIBC
#endif
#if __GLIBC_PREREQ(2, 42)
#undef DICE_CPU_2_42
#define DICE_CPU_2_42 DICE_CPU_IN_LIBC
#endif
#endif

// Functions that exist for double (`name`), float (`namef`), and overloaded for float (`name(float)`).
#define DICE_CPU_UNARY(name, expression) DICE_CPU_UNARY_AS(DICE_CPU_INLINE, name, expression)
#define DICE_CPU_UNARY_AS(linkage, name, expression)                         \
    linkage double name(double x) noexcept { return (expression); }          \
    linkage float name##f(float x_) noexcept {                               \
        const double x = x_;                                                 \
        return static_cast<float>(expression);                               \
    }                                                                        \
    DICE_CPU_INLINE float name(float x) { return name##f(x); }

DICE_CPU_2_42 double rsqrt(double x) noexcept { return 1.0 / sqrt(x); }
DICE_CPU_2_42 float rsqrtf(float x) noexcept { return 1.0f / sqrtf(x); }
DICE_CPU_INLINE float rsqrt(float x) { return rsqrtf(x); }
namespace dice_cpu {
DICE_CPU_INLINE double sin_of_pi(double x) {
    const double r = remainder(x, 2.0);  // exact, in [-1, 1]
    if (r != r) return r;
    if (r == 0 || fabs(r) == 1) return copysign(0.0, x);
    return fabs(r) == 0.5 ? copysign(1.0, r) : sin(M_PI * r);
}
DICE_CPU_INLINE double cos_of_pi(double x) {
    const double r = fabs(remainder(x, 2.0));
    return r == 0.5 ? 0.0 : cos(M_PI * r);
}
}  // namespace dice_cpu
DICE_CPU_UNARY(rcbrt, 1.0 / cbrt(x))
DICE_CPU_UNARY_AS(DICE_CPU_2_41, sinpi, dice_cpu::sin_of_pi(x))
DICE_CPU_UNARY_AS(DICE_CPU_2_41, cospi, dice_cpu::cos_of_pi(x))
DICE_CPU_UNARY(erfinv, dice_cpu_erfinv(x))
DICE_CPU_UNARY(erfcinv, dice_cpu_erfcinv(x))
DICE_CPU_UNARY(erfcx, dice_cpu_erfcx(x))
DICE_CPU_UNARY(normcdf, 0.5 * erfc(-x * M_SQRT1_2))
DICE_CPU_UNARY(normcdfinv, -M_SQRT2* dice_cpu_erfcinv(2.0 * x))
DICE_CPU_UNARY(cyl_bessel_i0, dice_cpu_bessel_i(0, x))
DICE_CPU_UNARY(cyl_bessel_i1, dice_cpu_bessel_i(1, x))
#undef DICE_CPU_UNARY
#undef DICE_CPU_UNARY_AS
#undef DICE_CPU_2_41
#undef DICE_CPU_2_42
#undef DICE_CPU_IN_LIBC
#ifndef __USE_GNU
DICE_CPU_INLINE double exp10(double x) { return pow(10.0, x); }
DICE_CPU_INLINE float exp10f(float x) { return powf(10.0f, x); }
#endif
DICE_CPU_INLINE float exp10(float x) { return exp10f(x); }

DICE_CPU_INLINE void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }
DICE_CPU_INLINE void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
DICE_CPU_INLINE void sincos(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
DICE_CPU_INLINE void sincospi(float x, float* s, float* c) { sincospif(x, s, c); }
DICE_CPU_INLINE double fdivide(double x, double y) { return x / y; }
DICE_CPU_INLINE float fdividef(float x, float y) { return x / y; }
DICE_CPU_INLINE float fdivide(float x, float y) { return x / y; }
DICE_CPU_INLINE double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
DICE_CPU_INLINE float rhypotf(float x, float y) { return 1.0f / hypotf(x, y); }
DICE_CPU_INLINE double norm3d(double a, double b, double c) { return sqrt(a * a + b * b + c * c); }
DICE_CPU_INLINE float norm3df(float a, float b, float c) { return static_cast<float>(norm3d(a, b, c)); }
DICE_CPU_INLINE double norm4d(double a, double b, double c, double d) { return sqrt(a * a + b * b + c * c + d * d); }
DICE_CPU_INLINE float norm4df(float a, float b, float c, float d) { return static_cast<float>(norm4d(a, b, c, d)); }
DICE_CPU_INLINE double rnorm3d(double a, double b, double c) { return 1.0 / norm3d(a, b, c); }
DICE_CPU_INLINE float rnorm3df(float a, float b, float c) { return static_cast<float>(rnorm3d(a, b, c)); }
DICE_CPU_INLINE double rnorm4d(double a, double b, double c, double d) { return 1.0 / norm4d(a, b, c, d); }
DICE_CPU_INLINE float rnorm4df(float a, float b, float c, float d) { return static_cast<float>(rnorm4d(a, b, c, d)); }
DICE_CPU_INLINE float normf(int n, const float* v) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += static_cast<double>(v[i]) * v[i];
    return static_cast<float>(sqrt(sum));
}
DICE_CPU_INLINE float rnormf(int n, const float* v) { return 1.0f / normf(n, v); }

namespace dice_cpu {
// exp2(y * log2(x)), as CUDA has it: NaN for a negative x, and for 0 to the power of 0. In double, to be as exact as powf.
DICE_CPU_INLINE float fast_powf(float x, float y) { return static_cast<float>(exp2(y * log2(static_cast<double>(x)))); }
}  // namespace dice_cpu

// Macros, since glibc declares functions of these names (and does not export them).
#define __expf expf
#define __exp10f exp10f
#define __logf logf
#define __log2f log2f
#define __log10f log10f
#define __powf dice_cpu::fast_powf
#define __sinf sinf
#define __cosf cosf
#define __tanf tanf
#define __tanhf tanhf
#define __sincosf sincosf
DICE_CPU_INLINE float __fdividef(float x, float y) { return fabsf(y) > 0x1p126f && !isinf(x) ? 0.0f * x : x / y; }
DICE_CPU_INLINE float __saturatef(float x) { return x >= 0 ? (x > 1 ? 1.0f : x) : 0.0f; }
DICE_CPU_INLINE float __frsqrt_rn(float x) { return static_cast<float>(1.0 / sqrt(static_cast<double>(x))); }

#define DICE_CPU_DIRECTED(type, direction, expression, ...) \
    dice_cpu::rounding<direction>(                          \
        [](type a, [[maybe_unused]] type b, [[maybe_unused]] type c) -> type { return (expression); }, __VA_ARGS__)
#define DICE_CPU_ROUNDED(suffix, direction)                                                                                  \
    DICE_CPU_SELDOM float __fadd_##suffix(float a, float b) { return DICE_CPU_DIRECTED(float, direction, a + b, a, b); }    \
    DICE_CPU_SELDOM float __fsub_##suffix(float a, float b) { return DICE_CPU_DIRECTED(float, direction, a - b, a, b); }    \
    DICE_CPU_SELDOM float __fmul_##suffix(float a, float b) { return dice_cpu::directed<direction>(static_cast<double>(a) * b); } \
    DICE_CPU_SELDOM float __fdiv_##suffix(float a, float b) { return dice_cpu::directed<direction>(static_cast<double>(a) / b); } \
    DICE_CPU_SELDOM float __frcp_##suffix(float a) { return dice_cpu::directed<direction>(1.0 / a); }                        \
    DICE_CPU_SELDOM float __fsqrt_##suffix(float a) { return dice_cpu::directed<direction>(sqrt(static_cast<double>(a))); }  \
    DICE_CPU_SELDOM float __fmaf_##suffix(float a, float b, float c) { return DICE_CPU_DIRECTED(float, direction, fmaf(a, b, c), a, b, c); } \
    DICE_CPU_SELDOM float __fmaf_ieee_##suffix(float a, float b, float c) { return __fmaf_##suffix(a, b, c); }               \
    DICE_CPU_SELDOM float __double2float_##suffix(double a) { return dice_cpu::directed<direction>(a); }                     \
    DICE_CPU_SELDOM float __int2float_##suffix(int a) { return dice_cpu::directed<direction>(static_cast<double>(a)); }      \
    DICE_CPU_SELDOM float __uint2float_##suffix(unsigned a) { return dice_cpu::directed<direction>(static_cast<double>(a)); } \
    DICE_CPU_SELDOM float __ll2float_##suffix(long long a) { return dice_cpu::directed<direction>(static_cast<long double>(a)); } \
    DICE_CPU_SELDOM float __ull2float_##suffix(unsigned long long a) { return dice_cpu::directed<direction>(static_cast<long double>(a)); }
DICE_CPU_ROUNDED(rd, 'd')
DICE_CPU_ROUNDED(ru, 'u')
DICE_CPU_ROUNDED(rz, 'z')
#undef DICE_CPU_ROUNDED

// The _rn forms are never contracted into a fused multiply-add: that is what they are for.
#define DICE_CPU_NEAREST(prefix, type)                                                                                \
    __attribute__((noipa, unused)) static type prefix##add_rn(type a, type b) { return a + b; }                       \
    __attribute__((noipa, unused)) static type prefix##sub_rn(type a, type b) { return a - b; }                       \
    __attribute__((noipa, unused)) static type prefix##mul_rn(type a, type b) { return a * b; }                       \
    DICE_CPU_INLINE type prefix##div_rn(type a, type b) { return a / b; }
DICE_CPU_NEAREST(__f, float)
DICE_CPU_NEAREST(__d, double)
#undef DICE_CPU_NEAREST
DICE_CPU_INLINE float __frcp_rn(float a) { return 1.0f / a; }
DICE_CPU_INLINE float __fsqrt_rn(float a) { return sqrtf(a); }
DICE_CPU_INLINE float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
DICE_CPU_INLINE float __fmaf_ieee_rn(float a, float b, float c) { return fmaf(a, b, c); }
DICE_CPU_INLINE double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
DICE_CPU_INLINE double __drcp_rn(double a) { return 1.0 / a; }
DICE_CPU_INLINE double __dsqrt_rn(double a) { return sqrt(a); }
DICE_CPU_INLINE float __double2float_rn(double a) { return static_cast<float>(a); }
DICE_CPU_INLINE float __int2float_rn(int a) { return static_cast<float>(a); }
DICE_CPU_INLINE float __uint2float_rn(unsigned a) { return static_cast<float>(a); }
DICE_CPU_INLINE float __ll2float_rn(long long a) { return static_cast<float>(a); }
DICE_CPU_INLINE float __ull2float_rn(unsigned long long a) { return static_cast<float>(a); }
#define DICE_CPU_ROUNDED_DOUBLE(suffix, direction)                                                                            \
    DICE_CPU_SELDOM double __dadd_##suffix(double a, double b) { return DICE_CPU_DIRECTED(double, direction, a + b, a, b); } \
    DICE_CPU_SELDOM double __dsub_##suffix(double a, double b) { return DICE_CPU_DIRECTED(double, direction, a - b, a, b); } \
    DICE_CPU_SELDOM double __dmul_##suffix(double a, double b) { return DICE_CPU_DIRECTED(double, direction, a * b, a, b); } \
    DICE_CPU_SELDOM double __ddiv_##suffix(double a, double b) { return DICE_CPU_DIRECTED(double, direction, a / b, a, b); } \
    DICE_CPU_SELDOM double __drcp_##suffix(double a) { return DICE_CPU_DIRECTED(double, direction, 1.0 / a, a); }            \
    DICE_CPU_SELDOM double __dsqrt_##suffix(double a) { return DICE_CPU_DIRECTED(double, direction, sqrt(a), a); }           \
    DICE_CPU_SELDOM double __fma_##suffix(double a, double b, double c) { return DICE_CPU_DIRECTED(double, direction, fma(a, b, c), a, b, c); } \
    DICE_CPU_SELDOM double __ll2double_##suffix(long long a) { return dice_cpu::directed_double<direction>(a); }              \
    DICE_CPU_SELDOM double __ull2double_##suffix(unsigned long long a) { return dice_cpu::directed_double<direction>(a); }
DICE_CPU_ROUNDED_DOUBLE(rd, 'd')
DICE_CPU_ROUNDED_DOUBLE(ru, 'u')
DICE_CPU_ROUNDED_DOUBLE(rz, 'z')
#undef DICE_CPU_ROUNDED_DOUBLE
#undef DICE_CPU_DIRECTED
DICE_CPU_INLINE double __int2double_rn(int a) { return a; }
DICE_CPU_INLINE double __uint2double_rn(unsigned a) { return a; }
DICE_CPU_INLINE double __ll2double_rn(long long a) { return static_cast<double>(a); }
DICE_CPU_INLINE double __ull2double_rn(unsigned long long a) { return static_cast<double>(a); }

#define DICE_CPU_TO_INTEGER(from, type, suffix, rounding)                                                                    \
    DICE_CPU_INLINE int __##from##2int_##suffix(type x) { return dice_cpu::saturating<int>(rounding(x)); }                   \
    DICE_CPU_INLINE unsigned __##from##2uint_##suffix(type x) { return dice_cpu::saturating<unsigned>(rounding(x)); }        \
    DICE_CPU_INLINE long long __##from##2ll_##suffix(type x) { return dice_cpu::saturating<long long>(rounding(x)); }        \
    DICE_CPU_INLINE unsigned long long __##from##2ull_##suffix(type x) { return dice_cpu::saturating<unsigned long long>(rounding(x)); }
DICE_CPU_TO_INTEGER(float, float, rn, rintf)
DICE_CPU_TO_INTEGER(float, float, rz, truncf)
DICE_CPU_TO_INTEGER(float, float, rd, floorf)
DICE_CPU_TO_INTEGER(float, float, ru, ceilf)
DICE_CPU_TO_INTEGER(double, double, rn, rint)
DICE_CPU_TO_INTEGER(double, double, rz, trunc)
DICE_CPU_TO_INTEGER(double, double, rd, floor)
DICE_CPU_TO_INTEGER(double, double, ru, ceil)
#undef DICE_CPU_TO_INTEGER

DICE_CPU_INLINE int __float_as_int(float x) { return dice_cpu::bits_to<int>(x); }
DICE_CPU_INLINE unsigned __float_as_uint(float x) { return dice_cpu::bits_to<unsigned>(x); }
DICE_CPU_INLINE float __int_as_float(int x) { return dice_cpu::bits_to<float>(x); }
DICE_CPU_INLINE float __uint_as_float(unsigned x) { return dice_cpu::bits_to<float>(x); }
DICE_CPU_INLINE long long __double_as_longlong(double x) { return dice_cpu::bits_to<long long>(x); }
DICE_CPU_INLINE double __longlong_as_double(long long x) { return dice_cpu::bits_to<double>(x); }
DICE_CPU_INLINE int __double2hiint(double x) { return static_cast<int>(dice_cpu::bits_to<unsigned long long>(x) >> 32); }
DICE_CPU_INLINE int __double2loint(double x) { return static_cast<int>(dice_cpu::bits_to<unsigned long long>(x)); }
DICE_CPU_INLINE double __hiloint2double(int hi, int lo) {
    return dice_cpu::bits_to<double>((static_cast<unsigned long long>(static_cast<unsigned>(hi)) << 32) | static_cast<unsigned>(lo));
}
