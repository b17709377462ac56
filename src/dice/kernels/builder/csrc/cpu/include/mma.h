// wmma: a warp's matrix fragments. Each lane holds its share of the elements; the product is computed once, when all
// lanes have come to it. Which lane holds which element is not documented by CUDA either.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"

#pragma GCC visibility push(hidden)

namespace nvcuda::wmma {

enum layout_t { mem_row_major, mem_col_major };
struct row_major;
struct col_major;
struct matrix_a;
struct matrix_b;
struct accumulator;
namespace precision {
struct tf32;
}

namespace details {

template <class T> struct Stored { using type = T; };
template <> struct Stored<precision::tf32> { using type = float; };

DICE_CPU_INLINE float number(float x) { return x; }
DICE_CPU_INLINE double number(double x) { return x; }
DICE_CPU_INLINE int number(int x) { return x; }
DICE_CPU_INLINE int number(signed char x) { return x; }
DICE_CPU_INLINE int number(unsigned char x) { return x; }
DICE_CPU_INLINE float number(__half x) { return wide(x); }
DICE_CPU_INLINE float number(__nv_bfloat16 x) { return wide(x); }
template <class T, class F>
DICE_CPU_INLINE T cast(F x) {
    if constexpr (std::is_arithmetic_v<T>) return static_cast<T>(x);
    else return dice_cpu::narrow<T>(static_cast<float>(x));
}

}  // namespace details

template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
    using element_type = typename details::Stored<T>::type;
    using storage_element_type = element_type;
    static constexpr int rows = std::is_same_v<Use, matrix_b> ? K : M;
    static constexpr int columns = std::is_same_v<Use, matrix_a> ? K : N;
    static constexpr int num_elements = rows * columns / 32;
    static constexpr int num_storage_elements = num_elements;
    element_type x[num_elements];
};

template <class Use, int M, int N, int K, class T, class Layout, class V>
inline void fill_fragment(fragment<Use, M, N, K, T, Layout>& f, V value) {
    for (auto& element : f.x) element = details::cast<typename fragment<Use, M, N, K, T, Layout>::element_type>(details::number(value));
}

namespace details {

// Element `i` of a lane is number lane + 32 i in row-major order.
template <class F, class P>
DICE_CPU_INLINE void load(F& f, const P* from, unsigned leading, bool by_row) {
    __syncwarp();
    for (int i = 0; i < F::num_elements; ++i) {
        const int index = static_cast<int>(dice_cpu_thread()->lane) + 32 * i, row = index / F::columns, column = index % F::columns;
        f.x[i] = cast<typename F::element_type>(number(by_row ? from[row * leading + column] : from[column * leading + row]));
    }
    __syncwarp();
}

}  // namespace details

template <class Use, int M, int N, int K, class T, class Layout, class P>
inline void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& f, const P* from, unsigned leading) {
    details::load(f, from, leading, std::is_same_v<Layout, row_major>);
}
template <int M, int N, int K, class T, class P>
inline void load_matrix_sync(fragment<accumulator, M, N, K, T>& f, const P* from, unsigned leading, layout_t layout) {
    details::load(f, from, leading, layout == mem_row_major);
}
template <class P, int M, int N, int K, class T>
inline void store_matrix_sync(P* to, const fragment<accumulator, M, N, K, T>& f, unsigned leading, layout_t layout) {
    using F = fragment<accumulator, M, N, K, T>;
    __syncwarp();
    for (int i = 0; i < F::num_elements; ++i) {
        const int index = static_cast<int>(dice_cpu_thread()->lane) + 32 * i, row = index / F::columns, column = index % F::columns;
        to[layout == mem_row_major ? row * leading + column : column * leading + row] = details::cast<P>(details::number(f.x[i]));
    }
    __syncwarp();
}

template <int M, int N, int K, class D, class A, class LA, class B, class LB, class C>
inline void mma_sync(fragment<accumulator, M, N, K, D>& d, const fragment<matrix_a, M, N, K, A, LA>& a, const fragment<matrix_b, M, N, K, B, LB>& b,
                     const fragment<accumulator, M, N, K, C>& c, bool = false) {
    struct Call {
        fragment<accumulator, M, N, K, D>* d;
        const fragment<matrix_a, M, N, K, A, LA>* a;
        const fragment<matrix_b, M, N, K, B, LB>* b;
        const fragment<accumulator, M, N, K, C>* c;
    } call{&d, &a, &b, &c};
    dice_cpu_warp_call(
        0xFFFFFFFFu,
        [](const dice_cpu::WarpCall& warp) {
            using Sum = std::conditional_t<std::is_same_v<C, int>, int, std::conditional_t<std::is_same_v<C, double>, double, float>>;
            Call* lanes[32];
            for (int lane = 0; lane < 32; ++lane) lanes[lane] = static_cast<Call*>(warp.operands[lane]);
            if (warp.members != 0xFFFFFFFFu) return;
            Sum left[M * K], right[K * N], sums[M * N];
            for (int i = 0; i < M * K; ++i) left[i] = static_cast<Sum>(details::number(lanes[i % 32]->a->x[i / 32]));
            for (int i = 0; i < K * N; ++i) right[i] = static_cast<Sum>(details::number(lanes[i % 32]->b->x[i / 32]));
            for (int i = 0; i < M * N; ++i) sums[i] = static_cast<Sum>(details::number(lanes[i % 32]->c->x[i / 32]));
            for (int i = 0; i < M; ++i)
                for (int k = 0; k < K; ++k)
                    for (int j = 0; j < N; ++j) sums[i * N + j] += left[i * K + k] * right[k * N + j];
            for (int i = 0; i < M * N; ++i) lanes[i % 32]->d->x[i / 32] = details::cast<D>(sums[i]);
        },
        &call);
}

DICE_CPU_INLINE float __float_to_tf32(float x) { return __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xFFFFE000u); }

}  // namespace nvcuda::wmma

#pragma GCC visibility pop
