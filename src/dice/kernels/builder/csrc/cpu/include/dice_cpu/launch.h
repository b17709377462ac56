// How a rewritten kernel runs. The rewriter (dice.kernels.cpu) turns
//
//     __global__ void k(float* x, int n) { BODY }          k<<<grid, block, shared, stream>>>(x, n);
//
// into
//
//     void k(float* x, int n) {                             (dice_cpu_configure(grid, block, shared, stream), k(x, n));
//         struct dice_body {
//             DICE_CPU_RUN(float* x, int n) BODY
//             DICE_CPU_LOOPS((float* x, int n), (x, n))     or DICE_CPU_FIBRES
//         };
//         DICE_CPU_LAUNCH("k", <fibres>, <self>, <bound>, (x, n))
//     }
//
// so that everything that names the kernel - templates, overloads, function pointers, occupancy calls - still does.
#pragma once

#include <memory>
#include <utility>

#include "abi.h"

namespace dice_cpu {

template <class Closure>
inline void launch(const Kernel& kernel, Closure& closure) {
    dice_cpu_launch(
        &kernel, [](void* self, Thread& thread) { (*static_cast<Closure*>(self))(thread); }, &closure);
}

template <class... A>
inline void keep(int after, const A&... arguments) {
    if (dice_cpu_keeping() == 0) return;
    dice_cpu_keep_moment(after);
    (dice_cpu_keep((const void*)std::addressof(arguments), sizeof(A)), ...);
    dice_cpu_kept(after);
}

// Makes `stub` known to cudaLaunchKernel, which sees a bare address and an array of pointers to arguments.
template <class... P>
struct Stub {
    template <size_t... I>
    static void call_with(void (*stub)(P...), void** arguments, std::index_sequence<I...>) {
        stub(*static_cast<std::remove_reference_t<P>*>(arguments[I])...);
    }
    static void call(const void* stub, void** arguments) {
        call_with(reinterpret_cast<void (*)(P...)>(const_cast<void*>(stub)), arguments, std::index_sequence_for<P...>{});
    }
};
template <class... P>
inline bool register_stub(void (*stub)(P...)) {
    dice_cpu_register(reinterpret_cast<const void*>(stub), &Stub<P...>::call);
    return true;
}
template <class Body>
struct Registered {
    static const bool done;
};
template <class Body>
const bool Registered<Body>::done = register_stub(Body::self());

}  // namespace dice_cpu

#define DICE_CPU_AND_MORE(...) __VA_OPT__(, ) __VA_ARGS__

#define DICE_CPU_RUN(...)                                                                                  \
    __attribute__((always_inline)) static inline void run(                                                 \
        [[maybe_unused]] const ::uint3 threadIdx, [[maybe_unused]] const ::uint3 blockIdx,                     \
        [[maybe_unused]] const ::dim3 blockDim, [[maybe_unused]] const ::dim3 gridDim __VA_OPT__(, ) __VA_ARGS__)

#define DICE_CPU_FIBRES(parameters, arguments)                                                             \
    static void block(dice_cpu::Thread& dice_thread DICE_CPU_AND_MORE parameters) {                        \
        run(dice_thread.thread_index, dice_thread.block_index, dice_thread.block_dim,                      \
            dice_thread.grid_dim DICE_CPU_AND_MORE arguments);                                             \
    }

// The bounds tell the vectoriser that index arithmetic does not wrap; the runtime refuses larger grids. Threads that
// never wait for each other are independent, hence `ivdep`.
#define DICE_CPU_LOOPS(parameters, arguments)                                                              \
    static void block(dice_cpu::Thread& dice_thread DICE_CPU_AND_MORE parameters) {                        \
        const ::uint3 dice_block = dice_thread.block_index;                                                  \
        const ::dim3 dice_dim = dice_thread.block_dim, dice_grid = dice_thread.grid_dim;                     \
        if (dice_dim.x > 1024 || dice_dim.x == 0) __builtin_unreachable();                                 \
        const unsigned dice_base = dice_block.x * dice_dim.x;                                              \
        if (dice_base > 0x7FFFFFFFu - 2048) __builtin_unreachable();                                       \
        for (unsigned dice_z = 0; dice_z < dice_dim.z; ++dice_z)                                           \
            for (unsigned dice_y = 0; dice_y < dice_dim.y; ++dice_y)                                       \
                _Pragma("GCC ivdep") for (unsigned dice_x = 0; dice_x < dice_dim.x; ++dice_x) {            \
                    DICE_CPU_TRACK(dice_x, dice_y, dice_z)                                                 \
                    run(::uint3{dice_x, dice_y, dice_z}, dice_block, dice_dim,                             \
                        dice_grid DICE_CPU_AND_MORE arguments);                                            \
                }                                                                                          \
    }

// Defined by the unit: whether functions other than kernels read threadIdx.
#define DICE_CPU_TRACK_NOTHING(x_, y_, z_)
#define DICE_CPU_TRACK_INDEX(x_, y_, z_) dice_thread.thread_index = ::uint3{x_, y_, z_};

#define DICE_CPU_LAUNCH(name, fibres, self, bound, arguments)                                              \
    static const dice_cpu::Kernel dice_kernel = {name, self, bound, fibres};                               \
    dice_cpu::keep(0 DICE_CPU_AND_MORE arguments);                                                         \
    auto dice_closure = [&](dice_cpu::Thread& dice_thread) {                                               \
        dice_body::block(dice_thread DICE_CPU_AND_MORE arguments);                                         \
    };                                                                                                     \
    dice_cpu::launch(dice_kernel, dice_closure);                                                           \
    dice_cpu::keep(1 DICE_CPU_AND_MORE arguments);

// The names of an object's kernels, ended by a null pointer.
#define DICE_CPU_KERNELS(...)                                                                              \
    DICE_CPU_API const char* const* dice_cpu_kernels() {                                                   \
        static const char* const names[] = {__VA_ARGS__ __VA_OPT__(, ) nullptr};                           \
        return names;                                                                                      \
    }

#define DICE_CPU_ASSERT(...)                                                                               \
    ((__VA_ARGS__) ? (void)0 : dice_cpu_fault(710, "Assertion `" #__VA_ARGS__ "' failed", __FILE__, __LINE__))
