// CUDA's norms of vectors of doubles, apart from <dice_cpu/math.h>: extensions have functions of these names, and the unit
// that binds them is to see no others.
#pragma once

#include "math.h"

DICE_CPU_INLINE double norm(int n, const double* v) {
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += v[i] * v[i];
    return sqrt(sum);
}
DICE_CPU_INLINE double rnorm(int n, const double* v) { return 1.0 / norm(n, v); }
