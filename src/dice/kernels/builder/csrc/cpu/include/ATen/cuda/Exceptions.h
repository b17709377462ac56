#pragma once

#include "../../cublas_v2.h"
#include "../../dice_cpu/torch_cuda.h"

#define TORCH_CUDABLAS_CHECK(expression)                                                     \
    do {                                                                                     \
        const cublasStatus_t dice_status = (expression);                                     \
        TORCH_CHECK(dice_status == CUBLAS_STATUS_SUCCESS, "CUDA error: ", cublasGetStatusString(dice_status), " when calling `" #expression "`"); \
    } while (0)
#define AT_CUDNN_CHECK(expression, ...)                                                      \
    do {                                                                                     \
        const cudnnStatus_t dice_status = (expression);                                      \
        TORCH_CHECK(dice_status == CUDNN_STATUS_SUCCESS, "cuDNN error: ", cudnnGetErrorString(dice_status), ##__VA_ARGS__); \
    } while (0)
