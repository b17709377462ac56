// For the host part of a split .cu, compiled by g++ instead of nvcc: what nvcc gives host code beyond plain headers.
#pragma once

#include <cstddef>

#include <cuda_runtime.h>

#if CUDART_VERSION >= 13000  // whose headers let a launch leave its block out
#define DICE_BLOCK = 1
#else
#define DICE_BLOCK
#endif
extern "C" unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block DICE_BLOCK, std::size_t shared = 0,
                                                struct CUstream_st* stream = nullptr);
extern "C" void dice_launch(const void* host, void** arguments);

// Functions and variables of the device, on the host side: the builder finds them by their sections.
#define DICE_KERNEL __attribute__((section(".text.dice_kernel"), noinline))
#define DICE_CONSTANT_VARIABLE __attribute__((section(".dice_constant"), used))
#define DICE_DEVICE_VARIABLE __attribute__((section(".dice_device"), used))

// nvcc's global min and max are host functions too (crt/math_functions.hpp); the same overloads, no more.
#define DICE_MIN_MAX(result, left, right)                                                                          \
  static inline result min(const left a, const right b) { return (result)a < (result)b ? (result)a : (result)b; } \
  static inline result max(const left a, const right b) { return (result)a > (result)b ? (result)a : (result)b; }
DICE_MIN_MAX(int, int, int)
DICE_MIN_MAX(unsigned int, unsigned int, unsigned int)
DICE_MIN_MAX(unsigned int, int, unsigned int)
DICE_MIN_MAX(unsigned int, unsigned int, int)
DICE_MIN_MAX(long int, long int, long int)
DICE_MIN_MAX(unsigned long int, unsigned long int, unsigned long int)
DICE_MIN_MAX(unsigned long int, long int, unsigned long int)
DICE_MIN_MAX(unsigned long int, unsigned long int, long int)
DICE_MIN_MAX(long long int, long long int, long long int)
DICE_MIN_MAX(unsigned long long int, unsigned long long int, unsigned long long int)
DICE_MIN_MAX(unsigned long long int, long long int, unsigned long long int)
DICE_MIN_MAX(unsigned long long int, unsigned long long int, long long int)
DICE_MIN_MAX(float, float, float)
DICE_MIN_MAX(double, double, double)
DICE_MIN_MAX(double, float, double)
DICE_MIN_MAX(double, double, float)
#undef DICE_MIN_MAX
