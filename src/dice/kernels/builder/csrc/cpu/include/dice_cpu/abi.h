// What a candidate's object and the runtime library agree on: launching a grid, and the operations of its threads.
//
// The candidate's kernels are ordinary functions. A launch hands the runtime a closure that runs either a whole block
// as loops over its threads (kernels that never wait for each other), or one thread (a fibre each, for kernels that do).
#pragma once

#include <cstddef>
#include <cstdint>

#include "types.h"

#define DICE_CPU_API extern "C" __attribute__((visibility("default")))
#define DICE_CPU_INLINE static inline __attribute__((always_inline, unused))
// A template: GCC compiles what it uses for those units alone that call it, and there are hundreds of these.
#define DICE_CPU_SELDOM template <class = void> DICE_CPU_INLINE

namespace dice_cpu {

// A thread of a grid. In loop form only the first line is kept up to date, and only for units whose device functions
// read it (kernels get their indices as arguments).
struct Thread {
    uint3 thread_index, block_index;
    dim3 block_dim, grid_dim;
    char* shared;         // dynamic shared memory of the block
    unsigned linear;      // threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)
    unsigned lane;        // linear % 32
    bool fibre;
    unsigned shared_bytes;
};

struct Kernel {
    const char* name;
    const void* stub;      // address of the host stub, by which the CUDA API names the kernel; null when unknown
    unsigned max_threads;  // of __launch_bounds__, 1024 without
    bool fibres;
};

using RunThread = void (*)(void* closure, Thread& thread);  // one thread

enum WarpOperation : int {
    kSync, kShflIndex, kShflUp, kShflDown, kShflXor, kBallot, kAll, kAny, kUniform, kMatchAny, kMatchAll, kActive,
    kReduceAdd, kReduceMin, kReduceMax, kReduceMinUnsigned, kReduceMaxUnsigned, kReduceAnd, kReduceOr, kReduceXor, kCall
};

// The lanes that take part in a general warp operation, and what each of them gave.
struct WarpCall {
    uint32_t members;
    void* operands[32];
};
using WarpFunction = void (*)(const WarpCall&);

enum BlockOperation : int { kBarrier, kBarrierCount, kBarrierAnd, kBarrierOr };

}  // namespace dice_cpu

// Launching.
DICE_CPU_API void dice_cpu_configure(dim3 grid, dim3 block, size_t shared_bytes, void* stream);
DICE_CPU_API void dice_cpu_launch(const dice_cpu::Kernel* kernel, void (*run)(void*, dice_cpu::Thread&), void* closure);
DICE_CPU_API void dice_cpu_register(const void* stub, void (*call)(const void* stub, void** arguments));

// While `dice_cpu_keeping` says so: copies of what the arguments of a launch lead to, before it and after it.
DICE_CPU_API int dice_cpu_keeping();
DICE_CPU_API void dice_cpu_keep_moment(int after);
DICE_CPU_API void dice_cpu_keep(const void* argument, size_t size);
DICE_CPU_API void dice_cpu_kept(int after);

// Inside a kernel.
DICE_CPU_API dice_cpu::Thread* dice_cpu_thread();
DICE_CPU_API int dice_cpu_block(int operation, int predicate);
DICE_CPU_API uint64_t dice_cpu_warp(int operation, uint32_t mask, uint64_t value, int argument, int width);
DICE_CPU_API void dice_cpu_warp_call(uint32_t mask, dice_cpu::WarpFunction function, void* operand);
DICE_CPU_API void dice_cpu_grid_sync();
DICE_CPU_API void dice_cpu_yield();
DICE_CPU_API __attribute__((noreturn, cold)) void dice_cpu_fault(int cuda_error, const char* what, const char* file, int line);
DICE_CPU_API __attribute__((noreturn, cold)) void dice_cpu_unsupported(const char* what);
