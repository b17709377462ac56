// gpuAtomicAdd and its kin.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "../../dice_cpu/torch_cuda.h"

#pragma GCC visibility push(hidden)
DICE_CPU_UPDATE(gpuAtomicAdd, uint16_t, c10::Half, static_cast<c10::Half>(old + value))
DICE_CPU_UPDATE(gpuAtomicAdd, uint16_t, c10::BFloat16, static_cast<c10::BFloat16>(old + value))
DICE_CPU_UPDATE(gpuAtomicAdd, uint8_t, uint8_t, static_cast<uint8_t>(old + value))
DICE_CPU_UPDATE(gpuAtomicAdd, uint8_t, int8_t, static_cast<int8_t>(old + value))
DICE_CPU_UPDATE(gpuAtomicAdd, uint16_t, int16_t, static_cast<int16_t>(old + value))
DICE_CPU_UPDATE(gpuAtomicAdd, uint32_t, int32_t, old + value)
DICE_CPU_UPDATE(gpuAtomicAdd, uint64_t, int64_t, old + value)
DICE_CPU_UPDATE(gpuAtomicAdd, uint8_t, bool, old || value)
DICE_CPU_INLINE float gpuAtomicAdd(float* address, float value) { return atomicAdd(address, value); }
DICE_CPU_INLINE double gpuAtomicAdd(double* address, double value) { return atomicAdd(address, value); }
template <typename T>
DICE_CPU_INLINE void gpuAtomicAddNoReturn(T* address, T value) { gpuAtomicAdd(address, value); }
template <typename T>
DICE_CPU_INLINE T gpuAtomicMax(T* address, T value) {
    using Word = std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;
    return dice_cpu::atomic_update<Word>(address, [value](T old) -> T { return value > old ? value : old; });
}
template <typename T>
DICE_CPU_INLINE T gpuAtomicMin(T* address, T value) {
    using Word = std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;
    return dice_cpu::atomic_update<Word>(address, [value](T old) -> T { return value < old ? value : old; });
}
#pragma GCC visibility pop
