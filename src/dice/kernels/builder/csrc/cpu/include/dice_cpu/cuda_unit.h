// What nvcc defines while it compiles a .cu, for the part of a unit that was one. The architecture is one that sources
// write plain code for, rather than instructions that only a GPU has.
#pragma once

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "../cuda_runtime_api.h"

// PyTorch's headers declare these for nvcc alone.
DICE_CPU_INLINE c10::Half __ldg(const c10::Half* p) { return *p; }
DICE_CPU_INLINE c10::BFloat16 __ldg(const c10::BFloat16* p) { return *p; }

#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDA_ARCH__ 700
#define __CUDA_ARCH_LIST__ 700
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDACC_VER_BUILD__ 88
#define __CUDACC_VER__ "__CUDACC_VER__ is no longer supported.  Use __CUDACC_VER_MAJOR__, __CUDACC_VER_MINOR__, and __CUDACC_VER_BUILD__ instead."
#define __CUDA_API_VER_MAJOR__ __CUDACC_VER_MAJOR__
#define __CUDA_API_VER_MINOR__ __CUDACC_VER_MINOR__
#define __CUDART_API_VERSION ((__CUDA_API_VER_MAJOR__ * 1000) + (__CUDA_API_VER_MINOR__ * 10))
#define __CUDACC_DEVICE_ATOMIC_BUILTINS__ 1
#define __CUDACC_RELAXED_CONSTEXPR__ 1  // PyTorch always asks for it
#define __NVCC_DIAG_PRAGMA_SUPPORT__ 1
#define CUDA_DOUBLE_MATH_FUNCTIONS 1
// Those by which CUDA's headers say that they were read.
#define __CUDA_RUNTIME_H__
#define __CUDA_RUNTIME_API_H__
#define __CUDA_DEVICE_RUNTIME_API_H__
#define __DRIVER_TYPES_H__
#define __VECTOR_TYPES_H__
#define __HOST_CONFIG_H__
#define __HOST_DEFINES_H__
#define __restrict__

// Tensor accessors without the promise of no aliasing, which is of no use here.
namespace at {
template <typename T>
struct RestrictPtrTraits {
    typedef T* PtrType;
};
}  // namespace at

#undef CUDA_KERNEL_ASSERT
#define CUDA_KERNEL_ASSERT(...) DICE_CPU_ASSERT(__VA_ARGS__)
#define CUDA_KERNEL_ASSERT_MSG(condition, ...) DICE_CPU_ASSERT(condition)
#define gpu_assert(...) DICE_CPU_ASSERT(__VA_ARGS__)
