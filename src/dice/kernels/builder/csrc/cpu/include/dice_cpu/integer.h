// Integer, bit and packed-integer (SIMD in a word) intrinsics, cached loads and stores, clocks.
#pragma once

#include <time.h>

#include <type_traits>

#include "abi.h"
#include "types.h"

DICE_CPU_INLINE int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
DICE_CPU_INLINE int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
DICE_CPU_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
DICE_CPU_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
DICE_CPU_INLINE int __ffs(int x) { return __builtin_ffs(x); }
DICE_CPU_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
DICE_CPU_INLINE unsigned __brev(unsigned x) {
    x = ((x >> 1) & 0x55555555u) | ((x & 0x55555555u) << 1);
    x = ((x >> 2) & 0x33333333u) | ((x & 0x33333333u) << 2);
    x = ((x >> 4) & 0x0F0F0F0Fu) | ((x & 0x0F0F0F0Fu) << 4);
    return __builtin_bswap32(x);
}
DICE_CPU_INLINE unsigned long long __brevll(unsigned long long x) {
    return (static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32) | __brev(static_cast<unsigned>(x >> 32));
}
DICE_CPU_INLINE unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    const unsigned long long bytes = (static_cast<unsigned long long>(y) << 32) | x;
    unsigned result = 0;
    for (int i = 0; i < 4; ++i) {
        const unsigned pick = selector >> (4 * i);
        unsigned byte = static_cast<unsigned>(bytes >> (8 * (pick & 7))) & 0xFF;
        if (pick & 8) byte = byte & 0x80 ? 0xFF : 0;
        result |= byte << (8 * i);
    }
    return result;
}
DICE_CPU_INLINE int __mul24(int x, int y) { return ((x << 8) >> 8) * ((y << 8) >> 8); }
DICE_CPU_INLINE unsigned __umul24(unsigned x, unsigned y) { return (x & 0xFFFFFF) * (y & 0xFFFFFF); }
DICE_CPU_INLINE int __mulhi(int x, int y) { return static_cast<int>((static_cast<long long>(x) * y) >> 32); }
DICE_CPU_INLINE unsigned __umulhi(unsigned x, unsigned y) { return static_cast<unsigned>((static_cast<unsigned long long>(x) * y) >> 32); }
DICE_CPU_INLINE long long __mul64hi(long long x, long long y) { return static_cast<long long>((static_cast<__int128>(x) * y) >> 64); }
DICE_CPU_INLINE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return static_cast<unsigned long long>((static_cast<unsigned __int128>(x) * y) >> 64);
}
DICE_CPU_INLINE unsigned __sad(int x, int y, unsigned z) { return (x > y ? static_cast<unsigned>(x) - y : static_cast<unsigned>(y) - x) + z; }
DICE_CPU_INLINE unsigned __usad(unsigned x, unsigned y, unsigned z) { return (x > y ? x - y : y - x) + z; }
DICE_CPU_INLINE int __hadd(int x, int y) { return static_cast<int>((static_cast<long long>(x) + y) >> 1); }
DICE_CPU_INLINE int __rhadd(int x, int y) { return static_cast<int>((static_cast<long long>(x) + y + 1) >> 1); }
DICE_CPU_INLINE unsigned __uhadd(unsigned x, unsigned y) { return static_cast<unsigned>((static_cast<unsigned long long>(x) + y) >> 1); }
DICE_CPU_INLINE unsigned __urhadd(unsigned x, unsigned y) { return static_cast<unsigned>((static_cast<unsigned long long>(x) + y + 1) >> 1); }
DICE_CPU_INLINE unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned shift) {
    return static_cast<unsigned>(((static_cast<unsigned long long>(hi) << 32 | lo) << (shift & 31)) >> 32);
}
DICE_CPU_INLINE unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned shift) {
    return static_cast<unsigned>((static_cast<unsigned long long>(hi) << 32 | lo) >> (shift & 31));
}
DICE_CPU_INLINE unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned shift) { return shift >= 32 ? lo : __funnelshift_l(lo, hi, shift); }
DICE_CPU_INLINE unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned shift) { return shift >= 32 ? hi : __funnelshift_r(lo, hi, shift); }
DICE_CPU_INLINE unsigned __fns(unsigned mask, unsigned base, int offset) {
    if (offset == 0) return (mask >> (base & 31)) & 1 ? base : 0xFFFFFFFFu;
    const int step = offset > 0 ? 1 : -1;
    for (int bit = static_cast<int>(base), found = 0; bit >= 0 && bit < 32; bit += step)
        if ((mask >> bit) & 1 && ++found == (offset > 0 ? offset : -offset)) return static_cast<unsigned>(bit);
    return 0xFFFFFFFFu;
}
DICE_CPU_INLINE unsigned short __nv_bswap16(unsigned short x) { return __builtin_bswap16(x); }
DICE_CPU_INLINE unsigned __nv_bswap32(unsigned x) { return __builtin_bswap32(x); }
DICE_CPU_INLINE unsigned long long __nv_bswap64(unsigned long long x) { return __builtin_bswap64(x); }

DICE_CPU_INLINE int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 4; ++i) c += static_cast<signed char>(a >> (8 * i)) * static_cast<signed char>(b >> (8 * i));
    return c;
}
DICE_CPU_INLINE unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 4; ++i) c += ((a >> (8 * i)) & 0xFF) * ((b >> (8 * i)) & 0xFF);
    return c;
}
DICE_CPU_INLINE int __dp4a(char4 a, char4 b, int c) { return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
DICE_CPU_INLINE unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) { return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
DICE_CPU_INLINE int __dp2a_lo(int a, int b, int c) {
    return c + static_cast<short>(a) * static_cast<signed char>(b) + static_cast<short>(a >> 16) * static_cast<signed char>(b >> 8);
}
DICE_CPU_INLINE int __dp2a_hi(int a, int b, int c) { return __dp2a_lo(a, b >> 16, c); }
DICE_CPU_INLINE unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) { return c + (a & 0xFFFF) * (b & 0xFF) + (a >> 16) * ((b >> 8) & 0xFF); }
DICE_CPU_INLINE unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) { return __dp2a_lo(a, b >> 16, c); }

namespace dice_cpu {
// Applies `f(lane of a, lane of b)` to the 4 bytes or 2 halves of a word; results are cut to the lane.
template <class Lane, class F>
DICE_CPU_INLINE unsigned lanes(unsigned a, unsigned b, F f) {
    constexpr int bits = 8 * sizeof(Lane);
    constexpr unsigned mask = (1u << bits) - 1;
    unsigned result = 0;
    for (int shift = 0; shift < 32; shift += bits)
        result |= (static_cast<unsigned>(f(static_cast<Lane>(a >> shift), static_cast<Lane>(b >> shift))) & mask) << shift;
    return result;
}
template <class Lane>
DICE_CPU_INLINE int clamped(int value) {
    constexpr int low = std::is_signed_v<Lane> ? -(1 << (8 * sizeof(Lane) - 1)) : 0;
    constexpr int high = std::is_signed_v<Lane> ? (1 << (8 * sizeof(Lane) - 1)) - 1 : (1 << (8 * sizeof(Lane))) - 1;
    return value < low ? low : value > high ? high : value;
}
}  // namespace dice_cpu
#define DICE_CPU_LANES(name, lane, expression) \
    DICE_CPU_SELDOM unsigned name(unsigned a_, unsigned b_) { return dice_cpu::lanes<lane>(a_, b_, [](int a, int b) { return (expression); }); }
#define DICE_CPU_LANES_UNARY(name, lane, expression) \
    DICE_CPU_SELDOM unsigned name(unsigned a_) { return dice_cpu::lanes<lane>(a_, a_, [](int a, int) { return (expression); }); }
#define DICE_CPU_BOTH_WIDTHS(n, signed_lane, unsigned_lane)                                         \
    DICE_CPU_LANES(__vadd##n, unsigned_lane, a + b)                                                 \
    DICE_CPU_LANES(__vsub##n, unsigned_lane, a - b)                                                 \
    DICE_CPU_LANES(__vaddss##n, signed_lane, dice_cpu::clamped<signed_lane>(a + b))                 \
    DICE_CPU_LANES(__vsubss##n, signed_lane, dice_cpu::clamped<signed_lane>(a - b))                 \
    DICE_CPU_LANES(__vaddus##n, unsigned_lane, dice_cpu::clamped<unsigned_lane>(a + b))             \
    DICE_CPU_LANES(__vsubus##n, unsigned_lane, dice_cpu::clamped<unsigned_lane>(a - b))             \
    DICE_CPU_LANES(__vmaxs##n, signed_lane, a > b ? a : b)                                          \
    DICE_CPU_LANES(__vmins##n, signed_lane, a < b ? a : b)                                          \
    DICE_CPU_LANES(__vmaxu##n, unsigned_lane, a > b ? a : b)                                        \
    DICE_CPU_LANES(__vminu##n, unsigned_lane, a < b ? a : b)                                        \
    DICE_CPU_LANES(__vabsdiffs##n, signed_lane, a > b ? a - b : b - a)                              \
    DICE_CPU_LANES(__vabsdiffu##n, unsigned_lane, a > b ? a - b : b - a)                            \
    DICE_CPU_LANES(__vavgs##n, signed_lane, (a + b + (a + b >= 0)) >> 1)                            \
    DICE_CPU_LANES(__vavgu##n, unsigned_lane, (a + b + 1) >> 1)                                     \
    DICE_CPU_LANES(__vhaddu##n, unsigned_lane, (a + b) >> 1)                                        \
    DICE_CPU_LANES_UNARY(__vabs##n, signed_lane, a < 0 ? -a : a)                                    \
    DICE_CPU_LANES_UNARY(__vabsss##n, signed_lane, dice_cpu::clamped<signed_lane>(a < 0 ? -a : a))  \
    DICE_CPU_LANES_UNARY(__vneg##n, signed_lane, -a)                                                \
    DICE_CPU_LANES_UNARY(__vnegss##n, signed_lane, dice_cpu::clamped<signed_lane>(-a))              \
    DICE_CPU_COMPARE(n, eq, unsigned_lane, ==)                                                      \
    DICE_CPU_COMPARE(n, ne, unsigned_lane, !=)                                                      \
    DICE_CPU_COMPARE(n, ges, signed_lane, >=)                                                       \
    DICE_CPU_COMPARE(n, geu, unsigned_lane, >=)                                                     \
    DICE_CPU_COMPARE(n, gts, signed_lane, >)                                                        \
    DICE_CPU_COMPARE(n, gtu, unsigned_lane, >)                                                      \
    DICE_CPU_COMPARE(n, les, signed_lane, <=)                                                       \
    DICE_CPU_COMPARE(n, leu, unsigned_lane, <=)                                                     \
    DICE_CPU_COMPARE(n, lts, signed_lane, <)                                                        \
    DICE_CPU_COMPARE(n, ltu, unsigned_lane, <)                                                      \
    DICE_CPU_SELDOM unsigned __vsadu##n(unsigned a, unsigned b) { return dice_cpu::lane_sum<unsigned_lane>(__vabsdiffu##n(a, b)); } \
    DICE_CPU_SELDOM unsigned __vsads##n(unsigned a, unsigned b) { return dice_cpu::lane_sum<unsigned_lane>(__vabsdiffs##n(a, b)); }
#define DICE_CPU_COMPARE(n, name, lane, op)           \
    DICE_CPU_LANES(__vcmp##name##n, lane, a op b ? -1 : 0) \
    DICE_CPU_LANES(__vset##name##n, lane, a op b ? 1 : 0)
namespace dice_cpu {
template <class Lane>
DICE_CPU_INLINE unsigned lane_sum(unsigned word) {
    unsigned sum = 0;
    for (int shift = 0; shift < 32; shift += 8 * sizeof(Lane)) sum += static_cast<Lane>(word >> shift);
    return sum;
}
}  // namespace dice_cpu
DICE_CPU_BOTH_WIDTHS(2, short, unsigned short)
DICE_CPU_BOTH_WIDTHS(4, signed char, unsigned char)
#undef DICE_CPU_COMPARE
#undef DICE_CPU_BOTH_WIDTHS
#undef DICE_CPU_LANES_UNARY
#undef DICE_CPU_LANES

#define DICE_CPU_THREE(name, type)                                                                              \
    DICE_CPU_INLINE type __vimax3_##name(type a, type b, type c) { return a > b ? (a > c ? a : c) : (b > c ? b : c); } \
    DICE_CPU_INLINE type __vimin3_##name(type a, type b, type c) { return a < b ? (a < c ? a : c) : (b < c ? b : c); } \
    DICE_CPU_INLINE type __viaddmax_##name(type a, type b, type c) { return a + b > c ? a + b : c; }             \
    DICE_CPU_INLINE type __viaddmin_##name(type a, type b, type c) { return a + b < c ? a + b : c; }
DICE_CPU_THREE(s32, int)
DICE_CPU_THREE(u32, unsigned)
#undef DICE_CPU_THREE
DICE_CPU_INLINE int __vimax_s32_relu(int a, int b) { return __vimax3_s32(a, b, 0); }
DICE_CPU_INLINE int __vimin_s32_relu(int a, int b) { return a < b ? (a > 0 ? a : 0) : (b > 0 ? b : 0); }

// Loads and stores with a cache hint: plain here, and for CUDA's types only.
namespace dice_cpu {
template <class T>
inline constexpr bool is_cached = false;
#define DICE_CPU_CACHED(type) \
    template <>               \
    inline constexpr bool dice_cpu::is_cached<type> = true;
#define DICE_CPU_CACHED_INTEGER(name, letter) \
    DICE_CPU_CACHED(name)                     \
    DICE_CPU_CACHED(unsigned name)            \
    DICE_CPU_CACHED(letter##2)                \
    DICE_CPU_CACHED(u##letter##2)
template <class T>
using Cached = std::enable_if_t<is_cached<T>, T>;
}  // namespace dice_cpu
DICE_CPU_CACHED_INTEGER(char, char)
DICE_CPU_CACHED_INTEGER(short, short)
DICE_CPU_CACHED_INTEGER(int, int)
DICE_CPU_CACHED_INTEGER(long long, longlong)
DICE_CPU_CACHED(signed char)
DICE_CPU_CACHED(long)
DICE_CPU_CACHED(unsigned long)
DICE_CPU_CACHED(char4)
DICE_CPU_CACHED(uchar4)
DICE_CPU_CACHED(short4)
DICE_CPU_CACHED(ushort4)
DICE_CPU_CACHED(int4)
DICE_CPU_CACHED(uint4)
DICE_CPU_CACHED(float)
DICE_CPU_CACHED(float2)
DICE_CPU_CACHED(float4)
DICE_CPU_CACHED(double)
DICE_CPU_CACHED(double2)
#undef DICE_CPU_CACHED_INTEGER

#define DICE_CPU_LOAD(name) \
    template <class T>      \
    DICE_CPU_INLINE dice_cpu::Cached<T> name(const T* p) { return *p; }
DICE_CPU_LOAD(__ldg)
DICE_CPU_LOAD(__ldca)
DICE_CPU_LOAD(__ldcg)
DICE_CPU_LOAD(__ldcs)
DICE_CPU_LOAD(__ldlu)
DICE_CPU_LOAD(__ldcv)
#undef DICE_CPU_LOAD
#define DICE_CPU_STORE(name) \
    template <class T>       \
    DICE_CPU_INLINE void name(T* p, dice_cpu::Cached<T> value) { *p = value; }
DICE_CPU_STORE(__stwb)
DICE_CPU_STORE(__stcg)
DICE_CPU_STORE(__stcs)
DICE_CPU_STORE(__stwt)
#undef DICE_CPU_STORE

DICE_CPU_INLINE long long clock64() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}
DICE_CPU_INLINE void __nanosleep(unsigned) { dice_cpu_yield(); }
DICE_CPU_INLINE void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
DICE_CPU_INLINE void __threadfence_block() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
DICE_CPU_INLINE void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
DICE_CPU_INLINE void __prof_trigger(int) {}
DICE_CPU_INLINE void __brkpt() {}
#define __trap() dice_cpu_fault(719, "__trap()", __FILE__, __LINE__)
#define __builtin_assume(condition) ((condition) ? (void)0 : __builtin_unreachable())
#define __nv_is_extended_device_lambda_closure_type(T) true
