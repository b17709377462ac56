// c10::cuda::compat: overloads for float and double.
#pragma once

#include "../../dice_cpu/torch_cuda.h"

#define DICE_CPU_COMPAT(name)                                                \
    inline float name(float x) { return ::name##f(x); }                      \
    inline double name(double x) { return ::name(x); }
#define DICE_CPU_COMPAT2(name)                                               \
    inline float name(float x, float y) { return ::name##f(x, y); }          \
    inline double name(double x, double y) { return ::name(x, y); }
namespace c10::cuda::compat {
inline float abs(float x) { return fabsf(x); }
inline double abs(double x) { return fabs(x); }
DICE_CPU_COMPAT(exp) DICE_CPU_COMPAT(ceil) DICE_CPU_COMPAT(floor) DICE_CPU_COMPAT(log) DICE_CPU_COMPAT(log1p) DICE_CPU_COMPAT(sqrt)
DICE_CPU_COMPAT(rsqrt) DICE_CPU_COMPAT(sin) DICE_CPU_COMPAT(cos) DICE_CPU_COMPAT(tan) DICE_CPU_COMPAT(tanh) DICE_CPU_COMPAT(normcdf)
DICE_CPU_COMPAT2(copysign) DICE_CPU_COMPAT2(pow)
inline float max(float x, float y) { return fmaxf(x, y); }
inline double max(double x, double y) { return fmax(x, y); }
inline float min(float x, float y) { return fminf(x, y); }
inline double min(double x, double y) { return fmin(x, y); }
}  // namespace c10::cuda::compat
#undef DICE_CPU_COMPAT
#undef DICE_CPU_COMPAT2
