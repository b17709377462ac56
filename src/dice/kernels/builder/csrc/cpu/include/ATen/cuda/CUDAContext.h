#pragma once

#include "../../cublasLt.h"
#include "../../cublas_v2.h"
#include "../../dice_cpu/torch_cuda.h"
#include "Exceptions.h"

namespace at::cuda {

inline cublasHandle_t getCurrentCUDABlasHandle(bool = true) { return dice_cpu_blas_default(); }
inline cublasLtHandle_t getCurrentCUDABlasLtHandle() { return reinterpret_cast<cublasLtHandle_t>(dice_cpu_blas_default()); }

}  // namespace at::cuda
