// CUDA's built-in vector types, with CUDA's names, member order, sizes and alignments.
#pragma once

#include <cstddef>
#include <cstdint>

#define DICE_CPU_VECTOR(name, scalar, align2, align4)                      \
    struct name##1 { scalar x; };                                          \
    struct alignas(align2) name##2 { scalar x, y; };                       \
    struct name##3 { scalar x, y, z; };                                    \
    struct alignas(align4) name##4 { scalar x, y, z, w; };                 \
    static inline constexpr name##1 make_##name##1(scalar x) { return {x}; } \
    static inline constexpr name##2 make_##name##2(scalar x, scalar y) { return {x, y}; } \
    static inline constexpr name##3 make_##name##3(scalar x, scalar y, scalar z) { return {x, y, z}; } \
    static inline constexpr name##4 make_##name##4(scalar x, scalar y, scalar z, scalar w) { return {x, y, z, w}; }

DICE_CPU_VECTOR(char, signed char, 2, 4)
DICE_CPU_VECTOR(uchar, unsigned char, 2, 4)
DICE_CPU_VECTOR(short, short, 4, 8)
DICE_CPU_VECTOR(ushort, unsigned short, 4, 8)
DICE_CPU_VECTOR(int, int, 8, 16)
DICE_CPU_VECTOR(uint, unsigned int, 8, 16)
DICE_CPU_VECTOR(long, long, 16, 16)
DICE_CPU_VECTOR(ulong, unsigned long, 16, 16)
DICE_CPU_VECTOR(longlong, long long, 16, 16)
DICE_CPU_VECTOR(ulonglong, unsigned long long, 16, 16)
DICE_CPU_VECTOR(float, float, 8, 16)
DICE_CPU_VECTOR(double, double, 16, 16)
#undef DICE_CPU_VECTOR

struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int x_ = 1, unsigned int y_ = 1, unsigned int z_ = 1) : x(x_), y(y_), z(z_) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};

static constexpr int warpSize = 32;
