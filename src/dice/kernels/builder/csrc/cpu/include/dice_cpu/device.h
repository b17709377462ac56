// Everything that nvcc knows without an include, apart from the runtime API.
#pragma once

#include <cfloat>
#include <climits>
#include <cstdio>
#include <cstring>

#pragma GCC visibility push(hidden)
#include "abi.h"
#include "atomics.h"
#include "integer.h"
#include "launch.h"
#include "math.h"
#include "types.h"
#include "warp.h"
#pragma GCC visibility pop

#define __host__
#define __device__
#define __global__
#define __constant__
#define __managed__
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __inline_hint__ inline
#ifndef __noinline__
#define __noinline__ __attribute__((noinline))
#endif
// As CUDA's headers have it: unlike alignas, it may stand anywhere in a declaration (`__shared__ __align__(16) float s[8]`).
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __device_builtin__
#define __cudart_builtin__
#define CUDARTAPI
#define CUDART_CB
