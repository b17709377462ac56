// cublasLtMatmul on the CPU, with the epilogues that add a bias and apply ReLU or GELU.
#pragma once

#include "cublas_v2.h"

struct cublasLtContext;
typedef struct cublasLtContext* cublasLtHandle_t;

enum cublasLtOrder_t { CUBLASLT_ORDER_COL, CUBLASLT_ORDER_ROW };
enum cublasLtPointerMode_t { CUBLASLT_POINTER_MODE_HOST, CUBLASLT_POINTER_MODE_DEVICE };
enum cublasLtEpilogue_t {
    CUBLASLT_EPILOGUE_DEFAULT = 1, CUBLASLT_EPILOGUE_RELU = 2, CUBLASLT_EPILOGUE_BIAS = 4, CUBLASLT_EPILOGUE_RELU_BIAS = 6,
    CUBLASLT_EPILOGUE_GELU = 32, CUBLASLT_EPILOGUE_GELU_BIAS = 36, CUBLASLT_EPILOGUE_RELU_AUX = 130, CUBLASLT_EPILOGUE_RELU_AUX_BIAS = 134,
    CUBLASLT_EPILOGUE_GELU_AUX = 160, CUBLASLT_EPILOGUE_GELU_AUX_BIAS = 164
};
enum cublasLtMatmulDescAttributes_t {
    CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, CUBLASLT_MATMUL_DESC_SCALE_TYPE, CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_MATMUL_DESC_TRANSA,
    CUBLASLT_MATMUL_DESC_TRANSB, CUBLASLT_MATMUL_DESC_TRANSC, CUBLASLT_MATMUL_DESC_FILL_MODE, CUBLASLT_MATMUL_DESC_EPILOGUE,
    CUBLASLT_MATMUL_DESC_BIAS_POINTER, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE = 10, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 11,
    CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD = 12, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE = 13, CUBLASLT_MATMUL_DESC_FAST_ACCUM = 25,
    CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26
};
enum cublasLtMatrixLayoutAttribute_t {
    CUBLASLT_MATRIX_LAYOUT_TYPE, CUBLASLT_MATRIX_LAYOUT_ORDER, CUBLASLT_MATRIX_LAYOUT_ROWS, CUBLASLT_MATRIX_LAYOUT_COLS,
    CUBLASLT_MATRIX_LAYOUT_LD, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET
};
enum cublasLtMatmulPreferenceAttributes_t {
    CUBLASLT_MATMUL_PREF_SEARCH_MODE = 0, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8
};

struct cublasLtMatmulDescOpaque_t {
    int32_t compute, scale, transa, transb, epilogue, bias_type;
    const void* bias;
    int64_t bias_stride;
};
struct cublasLtMatrixLayoutOpaque_t {
    int32_t type, order, batches;
    uint64_t rows, columns;
    int64_t leading, stride;
};
struct cublasLtMatmulPreferenceOpaque_t { uint64_t workspace; };
typedef cublasLtMatmulDescOpaque_t* cublasLtMatmulDesc_t;
typedef cublasLtMatrixLayoutOpaque_t* cublasLtMatrixLayout_t;
typedef cublasLtMatmulPreferenceOpaque_t* cublasLtMatmulPreference_t;
struct cublasLtMatmulAlgo_t { uint64_t data[8]; };
struct cublasLtMatmulHeuristicResult_t {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
};

DICE_CPU_API int dice_cpu_epilogue(const dice_cpu::Matrix* d, int64_t batches, int epilogue, const void* bias, int bias_type, int64_t bias_stride);

#pragma GCC visibility push(hidden)

DICE_CPU_INLINE cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
    return *handle = reinterpret_cast<cublasLtHandle_t>(dice_cpu_blas_default()), CUBLAS_STATUS_SUCCESS;
}
DICE_CPU_INLINE cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
DICE_CPU_INLINE size_t cublasLtGetVersion() { return 130000; }
DICE_CPU_INLINE cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t desc, cublasComputeType_t compute, cudaDataType_t scale) {
    *desc = {compute, scale, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, -1, nullptr, 0};
    return CUBLAS_STATUS_SUCCESS;
}
DICE_CPU_INLINE cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute, cudaDataType_t scale) {
    *desc = new cublasLtMatmulDescOpaque_t;
    return cublasLtMatmulDescInit(*desc, compute, scale);
}
DICE_CPU_INLINE cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) { return delete desc, CUBLAS_STATUS_SUCCESS; }
DICE_CPU_INLINE cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const void* value, size_t bytes) {
    void* member = nullptr;
    size_t size = 4;
    switch (attribute) {
        case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE: member = &desc->compute; break;
        case CUBLASLT_MATMUL_DESC_SCALE_TYPE: member = &desc->scale; break;
        case CUBLASLT_MATMUL_DESC_TRANSA: member = &desc->transa; break;
        case CUBLASLT_MATMUL_DESC_TRANSB: member = &desc->transb; break;
        case CUBLASLT_MATMUL_DESC_EPILOGUE: member = &desc->epilogue; break;
        case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: member = &desc->bias_type; break;
        case CUBLASLT_MATMUL_DESC_BIAS_POINTER: member = &desc->bias, size = 8; break;
        case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE: member = &desc->bias_stride, size = 8; break;
        case CUBLASLT_MATMUL_DESC_POINTER_MODE: case CUBLASLT_MATMUL_DESC_FAST_ACCUM: return CUBLAS_STATUS_SUCCESS;
        default: dice_cpu_unsupported("a cublasLtMatmul descriptor attribute");
    }
    if (bytes < size) return CUBLAS_STATUS_INVALID_VALUE;
    return memcpy(member, value, size), CUBLAS_STATUS_SUCCESS;
}
DICE_CPU_INLINE cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t layout, cudaDataType type, uint64_t rows, uint64_t columns, int64_t leading) {
    *layout = {type, CUBLASLT_ORDER_COL, 1, rows, columns, leading, 0};
    return CUBLAS_STATUS_SUCCESS;
}
DICE_CPU_INLINE cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows, uint64_t columns, int64_t leading) {
    *layout = new cublasLtMatrixLayoutOpaque_t;
    return cublasLtMatrixLayoutInit(*layout, type, rows, columns, leading);
}
DICE_CPU_INLINE cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return delete layout, CUBLAS_STATUS_SUCCESS; }
DICE_CPU_INLINE cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const void* value, size_t bytes) {
    void* member = nullptr;
    size_t size = 8;
    switch (attribute) {
        case CUBLASLT_MATRIX_LAYOUT_TYPE: member = &layout->type, size = 4; break;
        case CUBLASLT_MATRIX_LAYOUT_ORDER: member = &layout->order, size = 4; break;
        case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: member = &layout->batches, size = 4; break;
        case CUBLASLT_MATRIX_LAYOUT_ROWS: member = &layout->rows; break;
        case CUBLASLT_MATRIX_LAYOUT_COLS: member = &layout->columns; break;
        case CUBLASLT_MATRIX_LAYOUT_LD: member = &layout->leading; break;
        case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: member = &layout->stride; break;
    }
    if (member == nullptr || bytes < size) return CUBLAS_STATUS_INVALID_VALUE;
    return memcpy(member, value, size), CUBLAS_STATUS_SUCCESS;
}
DICE_CPU_INLINE cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) { return *preference = new cublasLtMatmulPreferenceOpaque_t{0}, CUBLAS_STATUS_SUCCESS; }
DICE_CPU_INLINE cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t preference) { return preference->workspace = 0, CUBLAS_STATUS_SUCCESS; }
DICE_CPU_INLINE cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) { return delete preference, CUBLAS_STATUS_SUCCESS; }
DICE_CPU_INLINE cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, const void*, size_t) { return CUBLAS_STATUS_SUCCESS; }
DICE_CPU_INLINE cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                              cublasLtMatmulPreference_t, int requested, cublasLtMatmulHeuristicResult_t results[], int* returned) {
    if (requested < 1) return CUBLAS_STATUS_INVALID_VALUE;
    results[0] = {{}, 0, CUBLAS_STATUS_SUCCESS, 1.0f, {}};
    return *returned = 1, CUBLAS_STATUS_SUCCESS;
}
namespace dice_cpu {
DICE_CPU_INLINE Matrix described(const void* data, cublasLtMatrixLayout_t layout) {
    const auto rows = static_cast<int64_t>(layout->rows), columns = static_cast<int64_t>(layout->columns);
    if (layout->order == CUBLASLT_ORDER_ROW) return {data, layout->type, rows, columns, layout->leading, 1, layout->stride};
    return {data, layout->type, rows, columns, 1, layout->leading, layout->stride};
}
DICE_CPU_INLINE bool fits(cublasLtMatrixLayout_t layout) {
    const auto rows = static_cast<int64_t>(layout->rows), columns = static_cast<int64_t>(layout->columns);
    return fits(layout->order == CUBLASLT_ORDER_ROW ? CUBLAS_OP_T : CUBLAS_OP_N, rows, columns, layout->leading);
}
}  // namespace dice_cpu
DICE_CPU_INLINE cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t) {
    dice_cpu::Matrix ma = dice_cpu::described(a, a_layout), mb = dice_cpu::described(b, b_layout);
    const dice_cpu::Matrix mc = dice_cpu::described(c, c_layout), md = dice_cpu::described(d, d_layout);
    if (desc->transa != CUBLAS_OP_N) ma = dice_cpu::transposed(ma);
    if (desc->transb != CUBLAS_OP_N) mb = dice_cpu::transposed(mb);
    for (const auto layout : {a_layout, b_layout, c_layout, d_layout})
        if (!dice_cpu::fits(layout)) return CUBLAS_STATUS_INVALID_VALUE;
    if (ma.columns != mb.rows || ma.rows != md.rows || mb.columns != md.columns) return CUBLAS_STATUS_INVALID_VALUE;
    if (c != d) {  // d starts as c; with beta = 0 that is not read
        const float one = 1, zero = 0;
        for (int64_t i = 0; c != nullptr && i < d_layout->batches; ++i) {
            dice_cpu::Matrix from = mc, to = md;
            const int64_t from_bytes = mc.type == CUDA_R_64F ? 8 : mc.type == CUDA_R_32F || mc.type == CUDA_R_32I ? 4 : mc.type == CUDA_R_8I ? 1 : 2;
            const int64_t to_bytes = md.type == CUDA_R_64F ? 8 : md.type == CUDA_R_32F || md.type == CUDA_R_32I ? 4 : md.type == CUDA_R_8I ? 1 : 2;
            from.data = static_cast<const char*>(mc.data) + i * mc.batch * from_bytes;
            to.data = static_cast<const char*>(md.data) + i * md.batch * to_bytes;
            if (const int status = dice_cpu_geam(&from, &from, &to, &one, &zero, CUDA_R_32F); status != 0) return dice_cpu::blas(status);
        }
    }
    if (const int status = dice_cpu_gemm(&ma, &mb, &md, d_layout->batches, alpha, beta, desc->scale); status != 0) return dice_cpu::blas(status);
    if (desc->epilogue == CUBLASLT_EPILOGUE_DEFAULT) return CUBLAS_STATUS_SUCCESS;
    const int bias_type = desc->bias_type >= 0 ? desc->bias_type : md.type;
    return dice_cpu::blas(dice_cpu_epilogue(&md, d_layout->batches, desc->epilogue, desc->bias, bias_type, desc->bias_stride));
}

#pragma GCC visibility pop
