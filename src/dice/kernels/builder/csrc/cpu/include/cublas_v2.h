// cuBLAS on the CPU: the calls that move or multiply real matrices, carried out by PyTorch's own routines in the runtime
// library. Matrices are column-major, as in cuBLAS. Complex types are absent.
#pragma once

#include "cuda_fp16.h"
#include "cuda_runtime_api.h"
#include "library_types.h"

struct cublasContext;
typedef struct cublasContext* cublasHandle_t;

#define DICE_CPU_CUBLAS_STATUSES(X)                                                                           \
    X(CUBLAS_STATUS_SUCCESS, 0) X(CUBLAS_STATUS_NOT_INITIALIZED, 1) X(CUBLAS_STATUS_ALLOC_FAILED, 3)          \
    X(CUBLAS_STATUS_INVALID_VALUE, 7) X(CUBLAS_STATUS_ARCH_MISMATCH, 8) X(CUBLAS_STATUS_MAPPING_ERROR, 11)    \
    X(CUBLAS_STATUS_EXECUTION_FAILED, 13) X(CUBLAS_STATUS_INTERNAL_ERROR, 14) X(CUBLAS_STATUS_NOT_SUPPORTED, 15)
enum cublasStatus_t {
#define DICE_CPU_ENUMERATOR(name, number) name = number,
    DICE_CPU_CUBLAS_STATUSES(DICE_CPU_ENUMERATOR)
#undef DICE_CPU_ENUMERATOR
};
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C };
enum cublasFillMode_t { CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER, CUBLAS_FILL_MODE_FULL };
enum cublasDiagType_t { CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT };
enum cublasSideMode_t { CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST, CUBLAS_POINTER_MODE_DEVICE };
enum cublasAtomicsMode_t { CUBLAS_ATOMICS_NOT_ALLOWED, CUBLAS_ATOMICS_ALLOWED };
enum cublasMath_t {
    CUBLAS_DEFAULT_MATH = 0, CUBLAS_TENSOR_OP_MATH = 1, CUBLAS_PEDANTIC_MATH = 2, CUBLAS_TF32_TENSOR_OP_MATH = 3,
    CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16
};
enum cublasComputeType_t {
    CUBLAS_COMPUTE_16F = 64, CUBLAS_COMPUTE_16F_PEDANTIC = 65, CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_PEDANTIC = 69,
    CUBLAS_COMPUTE_64F = 70, CUBLAS_COMPUTE_64F_PEDANTIC = 71, CUBLAS_COMPUTE_32I = 72, CUBLAS_COMPUTE_32I_PEDANTIC = 73,
    CUBLAS_COMPUTE_32F_FAST_16F = 74, CUBLAS_COMPUTE_32F_FAST_16BF = 75, CUBLAS_COMPUTE_32F_FAST_TF32 = 77
};
enum cublasGemmAlgo_t { CUBLAS_GEMM_DFALT = -1, CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_ALGO0 = 0, CUBLAS_GEMM_DFALT_TENSOR_OP = 99, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 };

// A strided matrix or vector, as the runtime library takes it: element (i, j) of batch b is at
// data[i * row + j * column + b * batch].
namespace dice_cpu {
struct Matrix {
    const void* data;
    int type;  // cudaDataType_t
    int64_t rows, columns, row, column, batch;
};
}  // namespace dice_cpu

DICE_CPU_API cublasHandle_t dice_cpu_blas_default();
// c = alpha * op(a) op(b) + beta * c; alpha and beta are read as `scalar` (cudaDataType_t).
DICE_CPU_API int dice_cpu_gemm(const dice_cpu::Matrix* a, const dice_cpu::Matrix* b, const dice_cpu::Matrix* c, int64_t batches,
                               const void* alpha, const void* beta, int scalar);
// c = alpha * a + beta * b, elementwise.
DICE_CPU_API int dice_cpu_geam(const dice_cpu::Matrix* a, const dice_cpu::Matrix* b, const dice_cpu::Matrix* c, const void* alpha,
                               const void* beta, int scalar);
// Only one triangle of c is written: lower when `lower`.
DICE_CPU_API int dice_cpu_syrk(const dice_cpu::Matrix* a, const dice_cpu::Matrix* b, const dice_cpu::Matrix* c, int lower,
                               const void* alpha, const void* beta, int scalar);
DICE_CPU_API int dice_cpu_triangular(const dice_cpu::Matrix* a, const dice_cpu::Matrix* b, int left, int upper, int unit,
                                     const void* alpha, int scalar);
DICE_CPU_API int dice_cpu_symmetric(const dice_cpu::Matrix* a, const dice_cpu::Matrix* b, const dice_cpu::Matrix* c, int left, int lower,
                                    const void* alpha, const void* beta, int scalar);

#pragma GCC visibility push(hidden)

namespace dice_cpu {

template <class T> constexpr int data_type() {
    if constexpr (std::is_same_v<T, double>) return CUDA_R_64F;
    else if constexpr (std::is_same_v<T, __half>) return CUDA_R_16F;
    else return CUDA_R_32F;
}
DICE_CPU_INLINE Matrix stored(const void* data, int type, int64_t rows, int64_t columns, int64_t leading, int64_t batch = 0) {
    return {data, type, rows, columns, 1, leading, batch};
}
DICE_CPU_INLINE Matrix transposed(Matrix m) { return {m.data, m.type, m.columns, m.rows, m.column, m.row, m.batch}; }
// Whether A has a size, and columns that do not overlap: what cuBLAS asks of a matrix whose op(A) is rows x columns.
DICE_CPU_INLINE bool fits(cublasOperation_t op, int64_t rows, int64_t columns, int64_t leading) {
    const int64_t length = op == CUBLAS_OP_N ? rows : columns;
    return rows >= 0 && columns >= 0 && leading >= (length > 1 ? length : 1);
}
DICE_CPU_INLINE bool fit(cublasOperation_t ta, cublasOperation_t tb, int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc, int64_t batches) {
    return fits(ta, m, k, lda) && fits(tb, k, n, ldb) && fits(CUBLAS_OP_N, m, n, ldc) && batches >= 0;
}
// op(A), of size rows x columns, from where A is stored.
DICE_CPU_INLINE Matrix operand(cublasOperation_t op, const void* data, int type, int64_t rows, int64_t columns, int64_t leading, int64_t batch = 0) {
    return op == CUBLAS_OP_N ? stored(data, type, rows, columns, leading, batch) : transposed(stored(data, type, columns, rows, leading, batch));
}
DICE_CPU_INLINE Matrix vector(const void* data, int type, int64_t n, int64_t step, int64_t size) {
    const char* first = static_cast<const char*>(data) + (step < 0 ? (1 - n) * step * size : 0);
    return {first, type, n, 1, step, 1, 0};
}
// The same rows from the last one on. What is read may have negative steps, what is written may not.
DICE_CPU_INLINE Matrix backward(Matrix m, int64_t size) {
    if (m.rows > 0) m.data = static_cast<const char*>(m.data) + (m.rows - 1) * m.row * size;
    m.row = -m.row;
    return m;
}
DICE_CPU_INLINE cublasStatus_t blas(int status) { return static_cast<cublasStatus_t>(status); }
DICE_CPU_INLINE int scalar_of(int compute, int c_type) {
    switch (compute) {
        case CUBLAS_COMPUTE_16F: case CUBLAS_COMPUTE_16F_PEDANTIC: return CUDA_R_16F;
        case CUBLAS_COMPUTE_64F: case CUBLAS_COMPUTE_64F_PEDANTIC: return CUDA_R_64F;
        case CUBLAS_COMPUTE_32I: case CUBLAS_COMPUTE_32I_PEDANTIC: return CUDA_R_32I;
        case CUDA_R_16F: return CUDA_R_16F;  // GemmEx once took a cudaDataType here
        case CUDA_R_32I: return CUDA_R_32I;
        case CUDA_R_64F: return c_type == CUDA_R_64F ? CUDA_R_64F : CUDA_R_32F;
        default: return CUDA_R_32F;
    }
}
template <class T>
DICE_CPU_INLINE cublasStatus_t gemm(cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T* alpha, const T* a, int64_t lda, int64_t sa,
                                    const T* b, int64_t ldb, int64_t sb, const T* beta, T* c, int64_t ldc, int64_t sc, int64_t batches) {
    constexpr int type = data_type<T>();
    if (!fit(ta, tb, m, n, k, lda, ldb, ldc, batches)) return CUBLAS_STATUS_INVALID_VALUE;
    const Matrix ma = operand(ta, a, type, m, k, lda, sa), mb = operand(tb, b, type, k, n, ldb, sb), mc = stored(c, type, m, n, ldc, sc);
    return blas(dice_cpu_gemm(&ma, &mb, &mc, batches, alpha, beta, type));
}

}  // namespace dice_cpu

DICE_CPU_INLINE const char* cublasGetStatusName(cublasStatus_t status) {
    switch (status) {
#define DICE_CPU_NAME(name, number) case name: return #name;
        DICE_CPU_CUBLAS_STATUSES(DICE_CPU_NAME)
#undef DICE_CPU_NAME
    }
    return "unknown";
}
DICE_CPU_INLINE const char* cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }

DICE_CPU_INLINE cublasStatus_t cublasCreate(cublasHandle_t* handle) { return *handle = dice_cpu_blas_default(), CUBLAS_STATUS_SUCCESS; }
DICE_CPU_INLINE cublasStatus_t cublasDestroy(cublasHandle_t) { return CUBLAS_STATUS_SUCCESS; }
DICE_CPU_INLINE cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) { return *version = 130000, CUBLAS_STATUS_SUCCESS; }
DICE_CPU_INLINE cublasStatus_t cublasSetStream(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }
DICE_CPU_INLINE cublasStatus_t cublasGetStream(cublasHandle_t, cudaStream_t* stream) { return *stream = nullptr, CUBLAS_STATUS_SUCCESS; }
DICE_CPU_INLINE cublasStatus_t cublasSetWorkspace(cublasHandle_t, void*, size_t) { return CUBLAS_STATUS_SUCCESS; }
DICE_CPU_INLINE cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
DICE_CPU_INLINE cublasStatus_t cublasGetMathMode(cublasHandle_t, cublasMath_t* mode) { return *mode = CUBLAS_DEFAULT_MATH, CUBLAS_STATUS_SUCCESS; }
DICE_CPU_INLINE cublasStatus_t cublasSetPointerMode(cublasHandle_t, cublasPointerMode_t) { return CUBLAS_STATUS_SUCCESS; }
DICE_CPU_INLINE cublasStatus_t cublasGetPointerMode(cublasHandle_t, cublasPointerMode_t* mode) { return *mode = CUBLAS_POINTER_MODE_HOST, CUBLAS_STATUS_SUCCESS; }
DICE_CPU_INLINE cublasStatus_t cublasSetAtomicsMode(cublasHandle_t, cublasAtomicsMode_t) { return CUBLAS_STATUS_SUCCESS; }
DICE_CPU_INLINE cublasStatus_t cublasSetVector(int n, int size, const void* x, int incx, void* y, int incy) {
    for (int i = 0; i < n; ++i) memcpy(static_cast<char*>(y) + int64_t{size} * incy * i, static_cast<const char*>(x) + int64_t{size} * incx * i, size);
    return CUBLAS_STATUS_SUCCESS;
}
DICE_CPU_INLINE cublasStatus_t cublasGetVector(int n, int size, const void* x, int incx, void* y, int incy) { return cublasSetVector(n, size, x, incx, y, incy); }
DICE_CPU_INLINE cublasStatus_t cublasSetMatrix(int rows, int columns, int size, const void* a, int lda, void* b, int ldb) {
    for (int j = 0; j < columns; ++j) memcpy(static_cast<char*>(b) + int64_t{size} * ldb * j, static_cast<const char*>(a) + int64_t{size} * lda * j, size_t(size) * rows);
    return CUBLAS_STATUS_SUCCESS;
}
DICE_CPU_INLINE cublasStatus_t cublasGetMatrix(int rows, int columns, int size, const void* a, int lda, void* b, int ldb) { return cublasSetMatrix(rows, columns, size, a, lda, b, ldb); }

#define DICE_CPU_GEMM(letter, T)                                                                                                                  \
    DICE_CPU_INLINE cublasStatus_t cublas##letter##gemm(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T* alpha, \
                                                        const T* a, int lda, const T* b, int ldb, const T* beta, T* c, int ldc) {                  \
        return dice_cpu::gemm(ta, tb, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1);                                                   \
    }                                                                                                                                              \
    DICE_CPU_INLINE cublasStatus_t cublas##letter##gemmStridedBatched(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T* alpha, \
                                                                      const T* a, int lda, long long sa, const T* b, int ldb, long long sb, const T* beta, T* c, \
                                                                      int ldc, long long sc, int batches) {                                         \
        return dice_cpu::gemm(ta, tb, m, n, k, alpha, a, lda, sa, b, ldb, sb, beta, c, ldc, sc, batches);                                          \
    }                                                                                                                                              \
    DICE_CPU_INLINE cublasStatus_t cublas##letter##gemmBatched(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T* alpha, \
                                                               const T* const a[], int lda, const T* const b[], int ldb, const T* beta, T* const c[], int ldc, int batches) { \
        if (!dice_cpu::fit(ta, tb, m, n, k, lda, ldb, ldc, batches)) return CUBLAS_STATUS_INVALID_VALUE;                                          \
        for (int i = 0; i < batches; ++i)                                                                                                          \
            if (const auto status = dice_cpu::gemm(ta, tb, m, n, k, alpha, a[i], lda, 0, b[i], ldb, 0, beta, c[i], ldc, 0, 1); status != CUBLAS_STATUS_SUCCESS) return status; \
        return CUBLAS_STATUS_SUCCESS;                                                                                                              \
    }
DICE_CPU_GEMM(S, float)
DICE_CPU_GEMM(D, double)
DICE_CPU_GEMM(H, __half)
#undef DICE_CPU_GEMM
DICE_CPU_INLINE cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void* alpha, const void* a, cudaDataType at_, int lda, long long sa,
                                                          const void* b, cudaDataType bt, int ldb, long long sb, const void* beta, void* c, cudaDataType ct, int ldc, long long sc, int batches, int compute, int) {
    if (!dice_cpu::fit(ta, tb, m, n, k, lda, ldb, ldc, batches)) return CUBLAS_STATUS_INVALID_VALUE;
    const dice_cpu::Matrix ma = dice_cpu::operand(ta, a, at_, m, k, lda, sa), mb = dice_cpu::operand(tb, b, bt, k, n, ldb, sb), mc = dice_cpu::stored(c, ct, m, n, ldc, sc);
    return dice_cpu::blas(dice_cpu_gemm(&ma, &mb, &mc, batches, alpha, beta, dice_cpu::scalar_of(compute, ct)));
}
DICE_CPU_INLINE cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void* alpha, const void* a, cudaDataType at_, int lda, const void* b,
                                            cudaDataType bt, int ldb, const void* beta, void* c, cudaDataType ct, int ldc, int compute, int algo) {
    return cublasGemmStridedBatchedEx(handle, ta, tb, m, n, k, alpha, a, at_, lda, 0, b, bt, ldb, 0, beta, c, ct, ldc, 0, 1, compute, algo);
}
DICE_CPU_INLINE cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const float* alpha, const void* a, cudaDataType at_, int lda, const void* b,
                                             cudaDataType bt, int ldb, const float* beta, void* c, cudaDataType ct, int ldc) {
    return cublasGemmEx(handle, ta, tb, m, n, k, alpha, a, at_, lda, b, bt, ldb, beta, c, ct, ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}
DICE_CPU_INLINE cublasStatus_t cublasGemmBatchedEx(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void* alpha, const void* const a[], cudaDataType at_, int lda,
                                                   const void* const b[], cudaDataType bt, int ldb, const void* beta, void* const c[], cudaDataType ct, int ldc, int batches, int compute, int algo) {
    if (!dice_cpu::fit(ta, tb, m, n, k, lda, ldb, ldc, batches)) return CUBLAS_STATUS_INVALID_VALUE;
    for (int i = 0; i < batches; ++i)
        if (const auto status = cublasGemmEx(handle, ta, tb, m, n, k, alpha, a[i], at_, lda, b[i], bt, ldb, beta, c[i], ct, ldc, compute, algo); status != CUBLAS_STATUS_SUCCESS) return status;
    return CUBLAS_STATUS_SUCCESS;
}

#define DICE_CPU_LEVEL_1_2(letter, i_letter, T)                                                                                                   \
    DICE_CPU_INLINE cublasStatus_t cublas##letter##axpy(cublasHandle_t, int n, const T* alpha, const T* x, int incx, T* y, int incy) {            \
        if (alpha == nullptr) return CUBLAS_STATUS_INVALID_VALUE;                                                                                 \
        for (int64_t i = 0; *alpha != 0 && i < n; ++i) y[(incy < 0 ? i - n + 1 : i) * incy] += *alpha * x[(incx < 0 ? i - n + 1 : i) * incx];     \
        return CUBLAS_STATUS_SUCCESS;                                                                                                             \
    }                                                                                                                                             \
    DICE_CPU_INLINE cublasStatus_t cublas##letter##copy(cublasHandle_t, int n, const T* x, int incx, T* y, int incy) {                            \
        for (int64_t i = 0; i < n; ++i) y[(incy < 0 ? i - n + 1 : i) * incy] = x[(incx < 0 ? i - n + 1 : i) * incx];                              \
        return CUBLAS_STATUS_SUCCESS;                                                                                                             \
    }                                                                                                                                             \
    DICE_CPU_INLINE cublasStatus_t cublas##letter##swap(cublasHandle_t, int n, T* x, int incx, T* y, int incy) {                                  \
        for (int64_t i = 0; i < n; ++i) std::swap(y[(incy < 0 ? i - n + 1 : i) * incy], x[(incx < 0 ? i - n + 1 : i) * incx]);                    \
        return CUBLAS_STATUS_SUCCESS;                                                                                                             \
    }                                                                                                                                             \
    DICE_CPU_INLINE cublasStatus_t cublas##letter##scal(cublasHandle_t, int n, const T* alpha, T* x, int incx) {                                  \
        if (alpha == nullptr) return CUBLAS_STATUS_INVALID_VALUE;                                                                                 \
        for (int64_t i = 0; incx > 0 && i < n; ++i) x[i * incx] *= *alpha;                                                                        \
        return CUBLAS_STATUS_SUCCESS;                                                                                                             \
    }                                                                                                                                             \
    DICE_CPU_INLINE cublasStatus_t cublas##letter##dot(cublasHandle_t, int n, const T* x, int incx, const T* y, int incy, T* result) {            \
        double sum = 0;                                                                                                                           \
        for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(y[(incy < 0 ? i - n + 1 : i) * incy]) * x[(incx < 0 ? i - n + 1 : i) * incx];  \
        return *result = static_cast<T>(sum), CUBLAS_STATUS_SUCCESS;                                                                              \
    }                                                                                                                                             \
    DICE_CPU_INLINE cublasStatus_t cublas##letter##nrm2(cublasHandle_t, int n, const T* x, int incx, T* result) {                                 \
        double sum = 0;                                                                                                                           \
        for (int64_t i = 0; incx > 0 && i < n; ++i) sum += static_cast<double>(x[i * incx]) * x[i * incx];                                        \
        return *result = static_cast<T>(sqrt(sum)), CUBLAS_STATUS_SUCCESS;                                                                        \
    }                                                                                                                                             \
    DICE_CPU_INLINE cublasStatus_t cublas##letter##asum(cublasHandle_t, int n, const T* x, int incx, T* result) {                                 \
        double sum = 0;                                                                                                                           \
        for (int64_t i = 0; incx > 0 && i < n; ++i) sum += fabs(static_cast<double>(x[i * incx]));                                                \
        return *result = static_cast<T>(sum), CUBLAS_STATUS_SUCCESS;                                                                              \
    }                                                                                                                                             \
    DICE_CPU_INLINE cublasStatus_t cublasI##i_letter##amax(cublasHandle_t, int n, const T* x, int incx, int* result) {                            \
        int64_t best = 0;                                                                                                                         \
        for (int64_t i = 1; incx > 0 && i < n; ++i)                                                                                               \
            if (fabs(static_cast<double>(x[i * incx])) > fabs(static_cast<double>(x[best * incx]))) best = i;                                     \
        return *result = n > 0 && incx > 0 ? static_cast<int>(best + 1) : 0, CUBLAS_STATUS_SUCCESS;                                               \
    }                                                                                                                                             \
    DICE_CPU_INLINE cublasStatus_t cublasI##i_letter##amin(cublasHandle_t, int n, const T* x, int incx, int* result) {                            \
        int64_t best = 0;                                                                                                                         \
        for (int64_t i = 1; incx > 0 && i < n; ++i)                                                                                               \
            if (fabs(static_cast<double>(x[i * incx])) < fabs(static_cast<double>(x[best * incx]))) best = i;                                     \
        return *result = n > 0 && incx > 0 ? static_cast<int>(best + 1) : 0, CUBLAS_STATUS_SUCCESS;                                               \
    }                                                                                                                                             \
    DICE_CPU_INLINE cublasStatus_t cublas##letter##gemv(cublasHandle_t, cublasOperation_t op, int m, int n, const T* alpha, const T* a, int lda, const T* x, int incx, \
                                                        const T* beta, T* y, int incy) {                                                          \
        constexpr int type = dice_cpu::data_type<T>();                                                                                            \
        if (!dice_cpu::fits(CUBLAS_OP_N, m, n, lda) || incx == 0 || incy == 0) return CUBLAS_STATUS_INVALID_VALUE;                                \
        const int rows = op == CUBLAS_OP_N ? m : n, columns = op == CUBLAS_OP_N ? n : m;                                                          \
        const dice_cpu::Matrix mx = dice_cpu::vector(x, type, columns, incx, sizeof(T));                                                          \
        dice_cpu::Matrix ma = dice_cpu::operand(op, a, type, rows, columns, lda), my = dice_cpu::vector(y, type, rows, incy, sizeof(T));          \
        if (incy < 0) ma = dice_cpu::backward(ma, sizeof(T)), my = dice_cpu::backward(my, sizeof(T));                                             \
        return dice_cpu::blas(dice_cpu_gemm(&ma, &mx, &my, 1, alpha, beta, type));                                                                \
    }                                                                                                                                             \
    DICE_CPU_INLINE cublasStatus_t cublas##letter##ger(cublasHandle_t, int m, int n, const T* alpha, const T* x, int incx, const T* y, int incy, T* a, int lda) { \
        constexpr int type = dice_cpu::data_type<T>();                                                                                            \
        if (!dice_cpu::fits(CUBLAS_OP_N, m, n, lda) || incx == 0 || incy == 0) return CUBLAS_STATUS_INVALID_VALUE;                                \
        const T one = 1;                                                                                                                          \
        const dice_cpu::Matrix mx = dice_cpu::vector(x, type, m, incx, sizeof(T)), my = dice_cpu::transposed(dice_cpu::vector(y, type, n, incy, sizeof(T))), \
                               ma = dice_cpu::stored(a, type, m, n, lda);                                                                         \
        return dice_cpu::blas(dice_cpu_gemm(&mx, &my, &ma, 1, alpha, &one, type));                                                                \
    }                                                                                                                                             \
    DICE_CPU_INLINE cublasStatus_t cublas##letter##geam(cublasHandle_t, cublasOperation_t ta, cublasOperation_t tb, int m, int n, const T* alpha, const T* a, int lda, \
                                                        const T* beta, const T* b, int ldb, T* c, int ldc) {                                      \
        constexpr int type = dice_cpu::data_type<T>();                                                                                            \
        if (!dice_cpu::fits(ta, m, n, lda) || !dice_cpu::fits(tb, m, n, ldb) || !dice_cpu::fits(CUBLAS_OP_N, m, n, ldc)) return CUBLAS_STATUS_INVALID_VALUE;\
        const dice_cpu::Matrix ma = dice_cpu::operand(ta, a, type, m, n, lda), mb = dice_cpu::operand(tb, b, type, m, n, ldb), mc = dice_cpu::stored(c, type, m, n, ldc); \
        return dice_cpu::blas(dice_cpu_geam(&ma, &mb, &mc, alpha, beta, type));                                                                   \
    }                                                                                                                                             \
    DICE_CPU_INLINE cublasStatus_t cublas##letter##dgmm(cublasHandle_t, cublasSideMode_t side, int m, int n, const T* a, int lda, const T* x, int incx, T* c, int ldc) { \
        if (!dice_cpu::fits(CUBLAS_OP_N, m, n, lda) || !dice_cpu::fits(CUBLAS_OP_N, m, n, ldc)) return CUBLAS_STATUS_INVALID_VALUE;               \
        const int64_t first = incx < 0 ? (int64_t{1} - (side == CUBLAS_SIDE_LEFT ? m : n)) * incx : 0;                                            \
        for (int64_t j = 0; j < n; ++j)                                                                                                           \
            for (int64_t i = 0; i < m; ++i) c[i + j * ldc] = a[i + j * lda] * x[first + (side == CUBLAS_SIDE_LEFT ? i : j) * incx];               \
        return CUBLAS_STATUS_SUCCESS;                                                                                                             \
    }                                                                                                                                             \
    DICE_CPU_INLINE cublasStatus_t cublas##letter##syrk(cublasHandle_t, cublasFillMode_t fill, cublasOperation_t op, int n, int k, const T* alpha, const T* a, int lda, \
                                                        const T* beta, T* c, int ldc) {                                                           \
        constexpr int type = dice_cpu::data_type<T>();                                                                                            \
        if (!dice_cpu::fits(op, n, k, lda) || !dice_cpu::fits(CUBLAS_OP_N, n, n, ldc)) return CUBLAS_STATUS_INVALID_VALUE;                        \
        const dice_cpu::Matrix ma = dice_cpu::operand(op, a, type, n, k, lda), mb = dice_cpu::transposed(ma), mc = dice_cpu::stored(c, type, n, n, ldc); \
        return dice_cpu::blas(dice_cpu_syrk(&ma, &mb, &mc, fill == CUBLAS_FILL_MODE_LOWER, alpha, beta, type));                                   \
    }                                                                                                                                             \
    DICE_CPU_INLINE cublasStatus_t cublas##letter##symm(cublasHandle_t, cublasSideMode_t side, cublasFillMode_t fill, int m, int n, const T* alpha, const T* a, int lda, \
                                                        const T* b, int ldb, const T* beta, T* c, int ldc) {                                      \
        constexpr int type = dice_cpu::data_type<T>();                                                                                            \
        const int order = side == CUBLAS_SIDE_LEFT ? m : n;                                                                                       \
        if (!dice_cpu::fits(CUBLAS_OP_N, order, order, lda) || !dice_cpu::fits(CUBLAS_OP_N, m, n, ldb) || !dice_cpu::fits(CUBLAS_OP_N, m, n, ldc)) return CUBLAS_STATUS_INVALID_VALUE;\
        const dice_cpu::Matrix ma = dice_cpu::stored(a, type, order, order, lda), mb = dice_cpu::stored(b, type, m, n, ldb), mc = dice_cpu::stored(c, type, m, n, ldc); \
        return dice_cpu::blas(dice_cpu_symmetric(&ma, &mb, &mc, side == CUBLAS_SIDE_LEFT, fill == CUBLAS_FILL_MODE_LOWER, alpha, beta, type));    \
    }                                                                                                                                             \
    DICE_CPU_INLINE cublasStatus_t cublas##letter##trsm(cublasHandle_t, cublasSideMode_t side, cublasFillMode_t fill, cublasOperation_t op, cublasDiagType_t diagonal, int m, \
                                                        int n, const T* alpha, const T* a, int lda, T* b, int ldb) {                              \
        constexpr int type = dice_cpu::data_type<T>();                                                                                            \
        const int order = side == CUBLAS_SIDE_LEFT ? m : n;                                                                                       \
        if (!dice_cpu::fits(op, order, order, lda) || !dice_cpu::fits(CUBLAS_OP_N, m, n, ldb)) return CUBLAS_STATUS_INVALID_VALUE;                \
        const dice_cpu::Matrix ma = dice_cpu::operand(op, a, type, order, order, lda), mb = dice_cpu::stored(b, type, m, n, ldb);                 \
        const bool upper = (fill == CUBLAS_FILL_MODE_UPPER) == (op == CUBLAS_OP_N);                                                               \
        return dice_cpu::blas(dice_cpu_triangular(&ma, &mb, side == CUBLAS_SIDE_LEFT, upper, diagonal == CUBLAS_DIAG_UNIT, alpha, type));      \
    }
DICE_CPU_LEVEL_1_2(S, s, float)
DICE_CPU_LEVEL_1_2(D, d, double)
#undef DICE_CPU_LEVEL_1_2

#pragma GCC visibility pop
