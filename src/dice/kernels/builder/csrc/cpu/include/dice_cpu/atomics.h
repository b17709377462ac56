// Atomic functions, with CUDA's overloads and no others. Blocks run on several cores, so they are real atomics.
//
// One that leaves memory as it was lets the block's other threads run: it may be waiting for one of them (a flag read by
// `atomicAdd(&flag, 0)`, a lock that `atomicExch(&lock, 1)` or `atomicCAS` does not get).
#pragma once

#include "math.h"

namespace dice_cpu {

// Replaces *address by f(*address) and returns what was there. T is read and written through an integer of its size.
template <class Word, class T, class F>
DICE_CPU_INLINE T atomic_update(T* address, F f) {
    Word* word = reinterpret_cast<Word*>(address);
    Word old = __atomic_load_n(word, __ATOMIC_RELAXED);
    for (;;) {
        const Word desired = bits_to<Word>(static_cast<T>(f(bits_to<T>(old))));
        if (!__atomic_compare_exchange_n(word, &old, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) continue;
        if (desired == old) dice_cpu_yield();
        return bits_to<T>(old);
    }
}

}  // namespace dice_cpu

#define DICE_CPU_SCOPES(name, parameters, arguments, type)                        \
    DICE_CPU_INLINE type name##_block parameters { return name arguments; }       \
    DICE_CPU_INLINE type name##_system parameters { return name arguments; }
#define DICE_CPU_FETCH(name, builtin, type, changed)                                                                \
    DICE_CPU_INLINE type name(type* address, type value) {                                                          \
        const type old = builtin(address, value, __ATOMIC_SEQ_CST);                                                 \
        if ((changed) == old) dice_cpu_yield();                                                                     \
        return old;                                                                                                 \
    }                                                                                                               \
    DICE_CPU_SCOPES(name, (type * address, type value), (address, value), type)
#define DICE_CPU_UPDATE(name, word, type, expression)                                                               \
    DICE_CPU_INLINE type name(type* address, type value) {                                                          \
        return dice_cpu::atomic_update<word>(address, [value]([[maybe_unused]] type old) -> type { return (expression); });          \
    }                                                                                                               \
    DICE_CPU_SCOPES(name, (type * address, type value), (address, value), type)
#define DICE_CPU_INTEGER(type)                                        \
    DICE_CPU_FETCH(atomicAnd, __atomic_fetch_and, type, old & value)  \
    DICE_CPU_FETCH(atomicOr, __atomic_fetch_or, type, old | value)    \
    DICE_CPU_FETCH(atomicXor, __atomic_fetch_xor, type, old ^ value)  \
    DICE_CPU_UPDATE(atomicMin, type, type, value < old ? value : old) \
    DICE_CPU_UPDATE(atomicMax, type, type, value > old ? value : old)

DICE_CPU_INTEGER(int)
DICE_CPU_INTEGER(unsigned)
DICE_CPU_INTEGER(unsigned long long)
DICE_CPU_INTEGER(long long)
DICE_CPU_FETCH(atomicAdd, __atomic_fetch_add, int, old + value)
DICE_CPU_FETCH(atomicAdd, __atomic_fetch_add, unsigned, old + value)
DICE_CPU_FETCH(atomicAdd, __atomic_fetch_add, unsigned long long, old + value)
DICE_CPU_UPDATE(atomicAdd, uint32_t, float, old + value)
DICE_CPU_UPDATE(atomicAdd, uint64_t, double, old + value)
DICE_CPU_FETCH(atomicSub, __atomic_fetch_sub, int, old - value)
DICE_CPU_FETCH(atomicSub, __atomic_fetch_sub, unsigned, old - value)
DICE_CPU_FETCH(atomicExch, __atomic_exchange_n, int, value)
DICE_CPU_FETCH(atomicExch, __atomic_exchange_n, unsigned, value)
DICE_CPU_FETCH(atomicExch, __atomic_exchange_n, unsigned long long, value)
DICE_CPU_UPDATE(atomicExch, uint32_t, float, value)
DICE_CPU_UPDATE(atomicInc, unsigned, unsigned, old >= value ? 0u : old + 1)
DICE_CPU_UPDATE(atomicDec, unsigned, unsigned, old == 0 || old > value ? value : old - 1)

#define DICE_CPU_CAS(type)                                                                                          \
    DICE_CPU_INLINE type atomicCAS(type* address, type compare, type value) {                                       \
        const type expected = compare;                                                                              \
        if (!__atomic_compare_exchange_n(address, &compare, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) &&    \
            compare != expected)                                                                                    \
            dice_cpu_yield();                                                                                       \
        return compare;                                                                                             \
    }                                                                                                               \
    DICE_CPU_SCOPES(atomicCAS, (type * address, type compare, type value), (address, compare, value), type)
DICE_CPU_CAS(int)
DICE_CPU_CAS(unsigned)
DICE_CPU_CAS(unsigned long long)
DICE_CPU_CAS(unsigned short)

// Vector forms (compute capability 9.0): each member by itself, as documented.
DICE_CPU_INLINE float2 atomicAdd(float2* address, float2 value) {
    return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)};
}
DICE_CPU_INLINE float4 atomicAdd(float4* address, float4 value) {
    return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y), atomicAdd(&address->z, value.z),
            atomicAdd(&address->w, value.w)};
}
#undef DICE_CPU_CAS
#undef DICE_CPU_INTEGER
#undef DICE_CPU_FETCH
