// Barriers and the operations of a warp. Lanes wait for each other in the runtime, where the last one to arrive
// computes everybody's result.
#pragma once

#include <type_traits>

#include "math.h"

DICE_CPU_INLINE void __syncthreads() { dice_cpu_block(dice_cpu::kBarrier, 0); }
DICE_CPU_INLINE int __syncthreads_count(int predicate) { return dice_cpu_block(dice_cpu::kBarrierCount, predicate); }
DICE_CPU_INLINE int __syncthreads_and(int predicate) { return dice_cpu_block(dice_cpu::kBarrierAnd, predicate); }
DICE_CPU_INLINE int __syncthreads_or(int predicate) { return dice_cpu_block(dice_cpu::kBarrierOr, predicate); }
DICE_CPU_INLINE void __syncwarp(unsigned mask = 0xFFFFFFFFu) { dice_cpu_warp(dice_cpu::kSync, mask, 0, 0, 32); }
DICE_CPU_INLINE unsigned __activemask() { return static_cast<unsigned>(dice_cpu_warp(dice_cpu::kActive, 0, 0, 0, 32)); }
DICE_CPU_INLINE unsigned __ballot_sync(unsigned mask, int predicate) {
    return static_cast<unsigned>(dice_cpu_warp(dice_cpu::kBallot, mask, predicate != 0, 0, 32));
}
DICE_CPU_INLINE int __all_sync(unsigned mask, int predicate) {
    return static_cast<int>(dice_cpu_warp(dice_cpu::kAll, mask, predicate != 0, 0, 32));
}
DICE_CPU_INLINE int __any_sync(unsigned mask, int predicate) {
    return static_cast<int>(dice_cpu_warp(dice_cpu::kAny, mask, predicate != 0, 0, 32));
}
DICE_CPU_INLINE int __uni_sync(unsigned mask, int predicate) {
    return static_cast<int>(dice_cpu_warp(dice_cpu::kUniform, mask, predicate != 0, 0, 32));
}

namespace dice_cpu {

template <class T>
DICE_CPU_INLINE T exchange(int operation, unsigned mask, T value, int argument, int width) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    bits = dice_cpu_warp(operation, mask, bits, argument, width);
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

}  // namespace dice_cpu

#define DICE_CPU_SHUFFLE(type)                                                                          \
    DICE_CPU_INLINE type __shfl_sync(unsigned mask, type value, int lane, int width = 32) {             \
        return dice_cpu::exchange(dice_cpu::kShflIndex, mask, value, lane, width);                      \
    }                                                                                                   \
    DICE_CPU_INLINE type __shfl_up_sync(unsigned mask, type value, unsigned delta, int width = 32) {    \
        return dice_cpu::exchange(dice_cpu::kShflUp, mask, value, static_cast<int>(delta), width);      \
    }                                                                                                   \
    DICE_CPU_INLINE type __shfl_down_sync(unsigned mask, type value, unsigned delta, int width = 32) {  \
        return dice_cpu::exchange(dice_cpu::kShflDown, mask, value, static_cast<int>(delta), width);    \
    }                                                                                                   \
    DICE_CPU_INLINE type __shfl_xor_sync(unsigned mask, type value, int lane_mask, int width = 32) {    \
        return dice_cpu::exchange(dice_cpu::kShflXor, mask, value, lane_mask, width);                   \
    }
DICE_CPU_SHUFFLE(int)
DICE_CPU_SHUFFLE(unsigned)
DICE_CPU_SHUFFLE(long)
DICE_CPU_SHUFFLE(unsigned long)
DICE_CPU_SHUFFLE(long long)
DICE_CPU_SHUFFLE(unsigned long long)
DICE_CPU_SHUFFLE(float)
DICE_CPU_SHUFFLE(double)

#define DICE_CPU_MATCH(type)                                                                                   \
    DICE_CPU_INLINE unsigned __match_any_sync(unsigned mask, type value) {                                     \
        uint64_t bits = 0;                                                                                     \
        __builtin_memcpy(&bits, &value, sizeof value);                                                         \
        return static_cast<unsigned>(dice_cpu_warp(dice_cpu::kMatchAny, mask, bits, 0, 32));                   \
    }                                                                                                          \
    DICE_CPU_INLINE unsigned __match_all_sync(unsigned mask, type value, int* predicate) {                     \
        uint64_t bits = 0;                                                                                     \
        __builtin_memcpy(&bits, &value, sizeof value);                                                         \
        const unsigned all = static_cast<unsigned>(dice_cpu_warp(dice_cpu::kMatchAll, mask, bits, 0, 32));     \
        *predicate = all != 0;                                                                                 \
        return all;                                                                                            \
    }
DICE_CPU_MATCH(int)
DICE_CPU_MATCH(unsigned)
DICE_CPU_MATCH(long)
DICE_CPU_MATCH(unsigned long)
DICE_CPU_MATCH(long long)
DICE_CPU_MATCH(unsigned long long)
DICE_CPU_MATCH(float)
DICE_CPU_MATCH(double)
#undef DICE_CPU_MATCH

#define DICE_CPU_REDUCE(name, operation, type)                                                                     \
    DICE_CPU_INLINE type name(unsigned mask, type value) {                                                         \
        return static_cast<type>(dice_cpu_warp(operation, mask, static_cast<uint64_t>(static_cast<unsigned>(value)), 0, 32)); \
    }
DICE_CPU_REDUCE(__reduce_add_sync, dice_cpu::kReduceAdd, int)
DICE_CPU_REDUCE(__reduce_add_sync, dice_cpu::kReduceAdd, unsigned)
DICE_CPU_REDUCE(__reduce_min_sync, dice_cpu::kReduceMin, int)
DICE_CPU_REDUCE(__reduce_min_sync, dice_cpu::kReduceMinUnsigned, unsigned)
DICE_CPU_REDUCE(__reduce_max_sync, dice_cpu::kReduceMax, int)
DICE_CPU_REDUCE(__reduce_max_sync, dice_cpu::kReduceMaxUnsigned, unsigned)
DICE_CPU_REDUCE(__reduce_and_sync, dice_cpu::kReduceAnd, unsigned)
DICE_CPU_REDUCE(__reduce_or_sync, dice_cpu::kReduceOr, unsigned)
DICE_CPU_REDUCE(__reduce_xor_sync, dice_cpu::kReduceXor, unsigned)
#undef DICE_CPU_REDUCE

namespace dice_cpu {

// What each lane gives to, and gets from, an operation on values of any trivially copyable type.
template <class T>
struct Operand {
    T value, result;
    int argument;
};

// Runs `f(members, operands)` once for the lanes of `mask`, when all of them have come; every operand lives until then.
template <class T, class F>
DICE_CPU_INLINE T together(unsigned mask, T value, int argument, F) {
    static_assert(std::is_empty_v<F> && std::is_trivially_copyable_v<T>);
    Operand<T> operand{value, value, argument};
    dice_cpu_warp_call(
        mask,
        [](const WarpCall& call) {
            Operand<T>* operands[32];
            for (int lane = 0; lane < 32; ++lane) operands[lane] = static_cast<Operand<T>*>(call.operands[lane]);
            alignas(F) char empty[sizeof(F)];
            (*reinterpret_cast<F*>(empty))(call.members, operands);
        },
        &operand);
    return operand.result;
}

}  // namespace dice_cpu
