// What __half and __nv_bfloat16 have in common: arithmetic in float, rounded to the type after every operation.
#pragma once

#include "atomics.h"
#include "integer.h"
#include "warp.h"

// `T` is the type, `T2` its pair; narrow<T>(float) and wide(T) convert.
#define DICE_CPU_SMALL_FLOAT(T, T2)                                                                                      \
    DICE_CPU_SMALL_BINARY(T, T2, add, a + b)                                                                             \
    DICE_CPU_SMALL_BINARY(T, T2, sub, a - b)                                                                             \
    DICE_CPU_SMALL_BINARY(T, T2, mul, a * b)                                                                             \
    DICE_CPU_SMALL_PLAIN(T, T2, __hadd_rn, __hadd2_rn, a + b)                                                            \
    DICE_CPU_SMALL_PLAIN(T, T2, __hsub_rn, __hsub2_rn, a - b)                                                            \
    DICE_CPU_SMALL_PLAIN(T, T2, __hmul_rn, __hmul2_rn, a * b)                                                            \
    DICE_CPU_SMALL_PLAIN(T, T2, __hdiv, __h2div, a / b)                                                                  \
    DICE_CPU_SMALL_PLAIN(T, T2, __hmax, __hmax2, fmaxf(a, b))                                                            \
    DICE_CPU_SMALL_PLAIN(T, T2, __hmin, __hmin2, fminf(a, b))                                                            \
    DICE_CPU_SMALL_PLAIN(T, T2, __hmax_nan, __hmax2_nan, a != a || b != b ? NAN : fmaxf(a, b))                           \
    DICE_CPU_SMALL_PLAIN(T, T2, __hmin_nan, __hmin2_nan, a != a || b != b ? NAN : fminf(a, b))                           \
    DICE_CPU_SMALL_COMPARE(T, T2, eq, a == b)                                                                            \
    DICE_CPU_SMALL_COMPARE(T, T2, ne, a < b || a > b)                                                                    \
    DICE_CPU_SMALL_COMPARE(T, T2, lt, a < b)                                                                             \
    DICE_CPU_SMALL_COMPARE(T, T2, le, a <= b)                                                                            \
    DICE_CPU_SMALL_COMPARE(T, T2, gt, a > b)                                                                             \
    DICE_CPU_SMALL_COMPARE(T, T2, ge, a >= b)                                                                            \
    DICE_CPU_SMALL_COMPARE(T, T2, equ, !(a < b || a > b))                                                                \
    DICE_CPU_SMALL_COMPARE(T, T2, neu, a != b)                                                                           \
    DICE_CPU_SMALL_COMPARE(T, T2, ltu, !(a >= b))                                                                        \
    DICE_CPU_SMALL_COMPARE(T, T2, leu, !(a > b))                                                                         \
    DICE_CPU_SMALL_COMPARE(T, T2, gtu, !(a <= b))                                                                        \
    DICE_CPU_SMALL_COMPARE(T, T2, geu, !(a < b))                                                                         \
    DICE_CPU_SMALL_UNARY(T, T2, __hneg, __hneg2, -x)                                                                     \
    DICE_CPU_SMALL_UNARY(T, T2, __habs, __habs2, fabsf(x))                                                               \
    DICE_CPU_SMALL_UNARY(T, T2, hsqrt, h2sqrt, sqrtf(x))                                                                 \
    DICE_CPU_SMALL_UNARY(T, T2, hrsqrt, h2rsqrt, 1.0f / sqrtf(x))                                                        \
    DICE_CPU_SMALL_UNARY(T, T2, hrcp, h2rcp, 1.0f / x)                                                                   \
    DICE_CPU_SMALL_UNARY(T, T2, hexp, h2exp, expf(x))                                                                    \
    DICE_CPU_SMALL_UNARY(T, T2, hexp2, h2exp2, exp2f(x))                                                                 \
    DICE_CPU_SMALL_UNARY(T, T2, hexp10, h2exp10, exp10f(x))                                                              \
    DICE_CPU_SMALL_UNARY(T, T2, hlog, h2log, logf(x))                                                                    \
    DICE_CPU_SMALL_UNARY(T, T2, hlog2, h2log2, log2f(x))                                                                 \
    DICE_CPU_SMALL_UNARY(T, T2, hlog10, h2log10, log10f(x))                                                              \
    DICE_CPU_SMALL_UNARY(T, T2, hsin, h2sin, sinf(x))                                                                    \
    DICE_CPU_SMALL_UNARY(T, T2, hcos, h2cos, cosf(x))                                                                    \
    DICE_CPU_SMALL_UNARY(T, T2, htanh, h2tanh, tanhf(x))                                                                 \
    DICE_CPU_SMALL_UNARY(T, T2, htanh_approx, h2tanh_approx, tanhf(x))                                                   \
    DICE_CPU_SMALL_UNARY(T, T2, hceil, h2ceil, ceilf(x))                                                                 \
    DICE_CPU_SMALL_UNARY(T, T2, hfloor, h2floor, floorf(x))                                                              \
    DICE_CPU_SMALL_UNARY(T, T2, hrint, h2rint, rintf(x))                                                                 \
    DICE_CPU_SMALL_UNARY(T, T2, htrunc, h2trunc, truncf(x))                                                              \
    DICE_CPU_INLINE T __hfma(T a, T b, T c) { return dice_cpu::narrow<T>(fmaf(wide(a), wide(b), wide(c))); }             \
    DICE_CPU_INLINE T __hfma_sat(T a, T b, T c) { return dice_cpu::narrow<T>(__saturatef(fmaf(wide(a), wide(b), wide(c)))); } \
    DICE_CPU_INLINE T __hfma_relu(T a, T b, T c) { return dice_cpu::narrow<T>(dice_cpu::relu(fmaf(wide(a), wide(b), wide(c)))); } \
    DICE_CPU_INLINE T2 __hfma2(T2 a, T2 b, T2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }              \
    DICE_CPU_INLINE T2 __hfma2_sat(T2 a, T2 b, T2 c) { return {__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y)}; }  \
    DICE_CPU_INLINE T2 __hfma2_relu(T2 a, T2 b, T2 c) { return {__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)}; } \
    DICE_CPU_INLINE T2 __hcmadd(T2 a, T2 b, T2 c) {                                                                      \
        return {__hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y))};               \
    }                                                                                                                    \
    DICE_CPU_INLINE bool __hisnan(T a) { return wide(a) != wide(a); }                                                    \
    DICE_CPU_INLINE int __hisinf(T a) { return isinf(wide(a)) ? (wide(a) > 0 ? 1 : -1) : 0; }                            \
    DICE_CPU_INLINE T2 __hisnan2(T2 a) { return {dice_cpu::narrow<T>(__hisnan(a.x)), dice_cpu::narrow<T>(__hisnan(a.y))}; } \
    DICE_CPU_INLINE float __low2float(T2 a) { return wide(a.x); }                                                        \
    DICE_CPU_INLINE float __high2float(T2 a) { return wide(a.y); }                                                       \
    DICE_CPU_INLINE T2 __lowhigh2highlow(T2 a) { return {a.y, a.x}; }                                                    \
    DICE_CPU_UPDATE(atomicAdd, uint16_t, T, dice_cpu::narrow<T>(wide(old) + wide(value)))                                \
    DICE_CPU_UPDATE(atomicAdd, uint32_t, T2, __hadd2(old, value))                                                        \
    DICE_CPU_SHUFFLE(T)                                                                                                  \
    DICE_CPU_SHUFFLE(T2)                                                                                                 \
    DICE_CPU_CACHED(T)                                                                                                   \
    DICE_CPU_CACHED(T2)

#define DICE_CPU_SMALL_PLAIN(T, T2, name, name2, expression)          \
    DICE_CPU_INLINE T name(T a_, T b_) {                              \
        const float a = wide(a_), b = wide(b_);                       \
        return dice_cpu::narrow<T>(expression);                       \
    }                                                                 \
    DICE_CPU_INLINE T2 name2(T2 a, T2 b) { return {name(a.x, b.x), name(a.y, b.y)}; }
#define DICE_CPU_SMALL_BINARY(T, T2, name, expression)                \
    DICE_CPU_SMALL_PLAIN(T, T2, __h##name, __h##name##2, expression)  \
    DICE_CPU_SMALL_PLAIN(T, T2, __h##name##_sat, __h##name##2_sat, __saturatef(expression))
#define DICE_CPU_SMALL_UNARY(T, T2, name, name2, expression)          \
    DICE_CPU_INLINE T name(T x_) {                                    \
        const float x = wide(x_);                                     \
        return dice_cpu::narrow<T>(expression);                       \
    }                                                                 \
    DICE_CPU_INLINE T2 name2(T2 a) { return {name(a.x), name(a.y)}; }
#define DICE_CPU_SMALL_COMPARE(T, T2, name, expression)               \
    DICE_CPU_INLINE bool __h##name(T a_, T b_) {                      \
        const float a = wide(a_), b = wide(b_);                       \
        return expression;                                            \
    }                                                                 \
    DICE_CPU_INLINE T2 __h##name##2(T2 a, T2 b) {                     \
        return {dice_cpu::narrow<T>(__h##name(a.x, b.x)), dice_cpu::narrow<T>(__h##name(a.y, b.y))}; \
    }                                                                 \
    DICE_CPU_INLINE bool __hb##name##2(T2 a, T2 b) { return __h##name(a.x, b.x) && __h##name(a.y, b.y); } \
    DICE_CPU_INLINE unsigned __h##name##2_mask(T2 a, T2 b) {          \
        return (__h##name(a.x, b.x) ? 0xFFFFu : 0u) | (__h##name(a.y, b.y) ? 0xFFFF0000u : 0u); \
    }

#define DICE_CPU_SMALL_OPERATORS(T)                                                  \
    DICE_CPU_INLINE T operator+(const T& a, const T& b) { return __hadd(a, b); }     \
    DICE_CPU_INLINE T operator-(const T& a, const T& b) { return __hsub(a, b); }     \
    DICE_CPU_INLINE T operator*(const T& a, const T& b) { return __hmul(a, b); }     \
    DICE_CPU_INLINE T operator/(const T& a, const T& b) { return __hdiv(a, b); }     \
    DICE_CPU_INLINE T& operator+=(T& a, const T& b) { return a = __hadd(a, b); }     \
    DICE_CPU_INLINE T& operator-=(T& a, const T& b) { return a = __hsub(a, b); }     \
    DICE_CPU_INLINE T& operator*=(T& a, const T& b) { return a = __hmul(a, b); }     \
    DICE_CPU_INLINE T& operator/=(T& a, const T& b) { return a = __hdiv(a, b); }     \
    DICE_CPU_INLINE T& operator++(T& a) { return a = dice_cpu::narrow<T>(wide(a) + 1); } \
    DICE_CPU_INLINE T& operator--(T& a) { return a = dice_cpu::narrow<T>(wide(a) - 1); } \
    DICE_CPU_INLINE T operator++(T& a, int) { const T old = a; ++a; return old; }    \
    DICE_CPU_INLINE T operator--(T& a, int) { const T old = a; --a; return old; }    \
    DICE_CPU_INLINE T operator+(const T& a) { return a; }                            \
    DICE_CPU_INLINE T operator-(const T& a) { return __hneg(a); }                    \
    DICE_CPU_INLINE bool operator==(const T& a, const T& b) { return __heq(a, b); }  \
    DICE_CPU_INLINE bool operator!=(const T& a, const T& b) { return __hneu(a, b); } \
    DICE_CPU_INLINE bool operator<(const T& a, const T& b) { return __hlt(a, b); }   \
    DICE_CPU_INLINE bool operator>(const T& a, const T& b) { return __hgt(a, b); }   \
    DICE_CPU_INLINE bool operator<=(const T& a, const T& b) { return __hle(a, b); }  \
    DICE_CPU_INLINE bool operator>=(const T& a, const T& b) { return __hge(a, b); }
#define DICE_CPU_SMALL_OPERATORS2(T2)                                                     \
    DICE_CPU_INLINE T2 operator+(const T2& a, const T2& b) { return __hadd2(a, b); }      \
    DICE_CPU_INLINE T2 operator-(const T2& a, const T2& b) { return __hsub2(a, b); }      \
    DICE_CPU_INLINE T2 operator*(const T2& a, const T2& b) { return __hmul2(a, b); }      \
    DICE_CPU_INLINE T2 operator/(const T2& a, const T2& b) { return __h2div(a, b); }      \
    DICE_CPU_INLINE T2& operator+=(T2& a, const T2& b) { return a = __hadd2(a, b); }      \
    DICE_CPU_INLINE T2& operator-=(T2& a, const T2& b) { return a = __hsub2(a, b); }      \
    DICE_CPU_INLINE T2& operator*=(T2& a, const T2& b) { return a = __hmul2(a, b); }      \
    DICE_CPU_INLINE T2& operator/=(T2& a, const T2& b) { return a = __h2div(a, b); }      \
    DICE_CPU_INLINE T2 operator+(const T2& a) { return a; }                               \
    DICE_CPU_INLINE T2 operator-(const T2& a) { return __hneg2(a); }                      \
    DICE_CPU_INLINE bool operator==(const T2& a, const T2& b) { return __hbeq2(a, b); }   \
    DICE_CPU_INLINE bool operator!=(const T2& a, const T2& b) { return __hbneu2(a, b); }  \
    DICE_CPU_INLINE bool operator<(const T2& a, const T2& b) { return __hblt2(a, b); }    \
    DICE_CPU_INLINE bool operator>(const T2& a, const T2& b) { return __hbgt2(a, b); }    \
    DICE_CPU_INLINE bool operator<=(const T2& a, const T2& b) { return __hble2(a, b); }   \
    DICE_CPU_INLINE bool operator>=(const T2& a, const T2& b) { return __hbge2(a, b); }

// Conversions to and from integers: `name` is half or bfloat16.
#define DICE_CPU_SMALL_INTEGER(T, name, type, type_name)                                                                    \
    DICE_CPU_INLINE type __##name##2##type_name##_rn(T x) { return dice_cpu::saturating<type>(rintf(wide(x))); }            \
    DICE_CPU_INLINE type __##name##2##type_name##_rz(T x) { return dice_cpu::saturating<type>(truncf(wide(x))); }           \
    DICE_CPU_INLINE type __##name##2##type_name##_rd(T x) { return dice_cpu::saturating<type>(floorf(wide(x))); }           \
    DICE_CPU_INLINE type __##name##2##type_name##_ru(T x) { return dice_cpu::saturating<type>(ceilf(wide(x))); }            \
    DICE_CPU_INLINE T __##type_name##2##name##_rn(type x) { return dice_cpu::nearest<T>(x); }                               \
    DICE_CPU_INLINE T __##type_name##2##name##_rz(type x) { return dice_cpu::narrow_towards<T, 'z'>(static_cast<dice_cpu::Exact<type>>(x)); } \
    DICE_CPU_INLINE T __##type_name##2##name##_rd(type x) { return dice_cpu::narrow_towards<T, 'd'>(static_cast<dice_cpu::Exact<type>>(x)); } \
    DICE_CPU_INLINE T __##type_name##2##name##_ru(type x) { return dice_cpu::narrow_towards<T, 'u'>(static_cast<dice_cpu::Exact<type>>(x)); }
#define DICE_CPU_SMALL_TO_CHAR(T, name, type, type_name) \
    DICE_CPU_INLINE type __##name##2##type_name##_rz(T x) { return dice_cpu::saturating<type>(truncf(wide(x))); }
#define DICE_CPU_SMALL_INTEGERS(T, name)                              \
    DICE_CPU_SMALL_TO_CHAR(T, name, signed char, char)                \
    DICE_CPU_SMALL_TO_CHAR(T, name, unsigned char, uchar)             \
    DICE_CPU_SMALL_INTEGER(T, name, int, int)                         \
    DICE_CPU_SMALL_INTEGER(T, name, unsigned, uint)                   \
    DICE_CPU_SMALL_INTEGER(T, name, short, short)                     \
    DICE_CPU_SMALL_INTEGER(T, name, unsigned short, ushort)           \
    DICE_CPU_SMALL_INTEGER(T, name, long long, ll)                    \
    DICE_CPU_SMALL_INTEGER(T, name, unsigned long long, ull)

// Functions that have the type in their names: `name` is half or bfloat16.
#define DICE_CPU_SMALL_NAMED(T, T2, name)                                                                          \
    DICE_CPU_INLINE float __##name##2float(T x) { return wide(x); }                                                \
    DICE_CPU_INLINE T __float2##name(float x) { return dice_cpu::narrow<T>(x); }                                   \
    DICE_CPU_INLINE T __float2##name##_rn(float x) { return dice_cpu::narrow<T>(x); }                              \
    DICE_CPU_INLINE T __float2##name##_rz(float x) { return dice_cpu::narrow_towards<T, 'z'>(x); }                 \
    DICE_CPU_INLINE T __float2##name##_rd(float x) { return dice_cpu::narrow_towards<T, 'd'>(x); }                 \
    DICE_CPU_INLINE T __float2##name##_ru(float x) { return dice_cpu::narrow_towards<T, 'u'>(x); }                 \
    DICE_CPU_INLINE T __double2##name(double x) { return dice_cpu::nearest<T>(x); }                                \
    DICE_CPU_INLINE T2 make_##name##2(T x, T y) { return {x, y}; }                                                 \
    DICE_CPU_INLINE T2 __halves2##name##2(T x, T y) { return {x, y}; }                                             \
    DICE_CPU_INLINE T2 __##name##2##name##2(T x) { return {x, x}; }                                                \
    DICE_CPU_INLINE T2 __float2##name##2_rn(float x) { return {__float2##name(x), __float2##name(x)}; }            \
    DICE_CPU_INLINE T2 __floats2##name##2_rn(float x, float y) { return {__float2##name(x), __float2##name(y)}; }  \
    DICE_CPU_INLINE T2 __float22##name##2_rn(float2 v) { return {__float2##name(v.x), __float2##name(v.y)}; }      \
    DICE_CPU_INLINE float2 __##name##22float2(T2 v) { return {wide(v.x), wide(v.y)}; }                             \
    DICE_CPU_INLINE T __low2##name(T2 v) { return v.x; }                                                           \
    DICE_CPU_INLINE T __high2##name(T2 v) { return v.y; }                                                          \
    DICE_CPU_INLINE T2 __low2##name##2(T2 v) { return {v.x, v.x}; }                                                \
    DICE_CPU_INLINE T2 __high2##name##2(T2 v) { return {v.y, v.y}; }                                               \
    DICE_CPU_INLINE T2 __lows2##name##2(T2 a, T2 b) { return {a.x, b.x}; }                                         \
    DICE_CPU_INLINE T2 __highs2##name##2(T2 a, T2 b) { return {a.y, b.y}; }                                        \
    DICE_CPU_INLINE short __##name##_as_short(T x) { return static_cast<short>(x.__x); }                           \
    DICE_CPU_INLINE unsigned short __##name##_as_ushort(T x) { return x.__x; }                                     \
    DICE_CPU_INLINE T __short_as_##name(short x) { return T##_raw{static_cast<unsigned short>(x)}; }               \
    DICE_CPU_INLINE T __ushort_as_##name(unsigned short x) { return T##_raw{x}; }

// The members of a 16-bit float class that CUDA offers unless its conversions are switched off.
#define DICE_CPU_SMALL_CONVERSIONS(T)                                                                                 \
    T(float x) : T(dice_cpu::narrow<T>(x)) {}                                                                         \
    T(double x) : T(dice_cpu::nearest<T>(x)) {}                                                                       \
    T(int x) : T(dice_cpu::nearest<T>(x)) {}                                                                          \
    T(unsigned x) : T(dice_cpu::nearest<T>(x)) {}                                                                     \
    T(short x) : T(dice_cpu::narrow<T>(static_cast<float>(x))) {}                                                     \
    T(unsigned short x) : T(dice_cpu::narrow<T>(static_cast<float>(x))) {}                                            \
    T(long x) : T(dice_cpu::nearest<T>(x)) {}                                                                         \
    T(unsigned long x) : T(dice_cpu::nearest<T>(x)) {}                                                                \
    T(long long x) : T(dice_cpu::nearest<T>(x)) {}                                                                    \
    T(unsigned long long x) : T(dice_cpu::nearest<T>(x)) {}                                                           \
    operator float() const { return wide(*this); }                                                                    \
    explicit operator bool() const { return wide(*this) != 0; }                                                       \
    explicit operator double() const { return wide(*this); }                                                          \
    explicit operator int() const { return dice_cpu::saturating<int>(truncf(wide(*this))); }                          \
    explicit operator unsigned() const { return dice_cpu::saturating<unsigned>(truncf(wide(*this))); }                \
    explicit operator long long() const { return dice_cpu::saturating<long long>(truncf(wide(*this))); }              \
    T& operator=(float x) { return *this = T(x); }                                                                    \
    T& operator=(double x) { return *this = T(x); }                                                                   \
    T& operator=(int x) { return *this = T(x); }                                                                      \
    T& operator=(unsigned x) { return *this = T(x); }                                                                 \
    T& operator=(long long x) { return *this = T(x); }

namespace dice_cpu {

template <class T>
T narrow(float value);

template <class T, class From>
DICE_CPU_INLINE T nearest(From x) { return narrow<T>(between(static_cast<Exact<From>>(x))); }

DICE_CPU_INLINE float relu(float x) { return x < 0 ? 0.0f : x; }  // keeps NaN

// The T nearest to `exact` in a direction, from the nearest T and its neighbours.
template <class T, char direction, class Exact>
DICE_CPU_INLINE T narrow_towards(Exact exact) {
    T value = narrow<T>(static_cast<float>(exact));
    const Exact got = wide(value);
    const bool down = direction == 'd' || (direction == 'z' && exact > 0), up = direction == 'u' || (direction == 'z' && exact < 0);
    if (exact != exact || !((got > exact && down) || (got < exact && up))) return value;
    auto bits = bits_to<uint16_t>(value);
    const bool negative = (bits & 0x8000) != 0, toward_zero = (got > exact) != negative;
    if (got == 0) bits = got > exact ? 0x8001 : 0x0001;
    else bits = static_cast<uint16_t>(toward_zero ? bits - 1 : bits + 1);
    return bits_to<T>(bits);
}

}  // namespace dice_cpu
