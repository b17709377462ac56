// Matrix routines behind the cuBLAS shim, through ATen.
#include <ATen/ATen.h>

#include "../include/cublasLt.h"
#include "operators.h"

namespace {

using dice_cpu::Matrix;

at::ScalarType scalar_type(int type) {
    switch (type) {
        case CUDA_R_32F: return at::kFloat;
        case CUDA_R_64F: return at::kDouble;
        case CUDA_R_16F: return at::kHalf;
        case CUDA_R_16BF: return at::kBFloat16;
        case CUDA_R_8I: return at::kChar;
        case CUDA_R_32I: return at::kInt;
        default: dice_cpu_unsupported("a cuBLAS data type other than float, double, half, bfloat16, int8 and int32");
    }
}

// A copy where steps are negative, which PyTorch's strides cannot be.
at::Tensor view(const Matrix& m, int64_t batches) {
    if (m.row < 0) return view(dice_cpu::backward(m, static_cast<int64_t>(c10::elementSize(scalar_type(m.type)))), batches).flip(1);
    if (m.column < 0) return view(dice_cpu::transposed(m), batches).transpose(1, 2);
    return at::from_blob(const_cast<void*>(m.data), {batches, m.rows, m.columns}, {m.batch, m.row, m.column}, scalar_type(m.type));
}

// alpha or beta. Raises where the pointer is null, which cuBLAS refuses.
double scalar(const void* value, int type) {
    TORCH_CHECK(value != nullptr);
    switch (type) {
        case CUDA_R_64F: return *static_cast<const double*>(value);
        case CUDA_R_16F: return static_cast<float>(*static_cast<const c10::Half*>(value));
        case CUDA_R_16BF: return static_cast<float>(*static_cast<const c10::BFloat16*>(value));
        case CUDA_R_32I: return *static_cast<const int32_t*>(value);
        default: return *static_cast<const float*>(value);
    }
}

// Products are accumulated in float for the 16-bit types, exactly for integers, as tensor cores do.
at::ScalarType accumulator(at::ScalarType type) {
    if (type == at::kChar || type == at::kInt) return at::kInt;
    return type == at::kDouble ? at::kDouble : at::kFloat;
}

template <class Body>
int status_of(const Body& body) { return dice_cpu::runs(body) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE; }

// c = times * c in double, which holds every other type. As in BLAS, 0 asks for zeros whatever c holds, NaN included.
void rescale(const at::Tensor& c, double times) {
    if (times == 0) c.zero_();
    else if (times != 1) c.copy_(c.to(at::kDouble) * times);
}

// Integers are scaled in double, which holds them all.
at::Tensor scaled(const at::Tensor& values, double times) {
    const at::Tensor wide = values.scalar_type() == at::kInt ? values.to(at::kDouble) : values;
    return times == 1 ? wide : wide * times;
}

// c = alpha * product() + beta * c. As in BLAS, what alpha = 0 multiplies is not read.
template <class Product>
void combine(const at::Tensor& c, double alpha, double beta, const Product& product) {
    if (alpha == 0) return rescale(c, beta);
    at::Tensor result = scaled(product(), alpha);
    if (beta != 0) result = result + c.to(result.scalar_type()) * beta;
    c.copy_(result);
}

at::Tensor product(const Matrix& a, const Matrix& b, int64_t batches, at::ScalarType type) {
    return at::matmul(view(a, batches).to(type), view(b, batches).to(type));
}

at::Tensor symmetric(const Matrix& a, bool lower) {
    const at::Tensor full = view(a, 1)[0];
    return lower ? at::tril(full) + at::tril(full, -1).t() : at::triu(full) + at::triu(full, 1).t();
}

}  // namespace

extern "C" {

cublasHandle_t dice_cpu_blas_default() {
    static int one;
    return reinterpret_cast<cublasHandle_t>(&one);
}

int dice_cpu_gemm(const Matrix* a, const Matrix* b, const Matrix* c, int64_t batches, const void* alpha, const void* beta, int scalar_kind) {
    return status_of([&] {
        const at::Tensor out = view(*c, batches);
        const auto type = accumulator(scalar_type(a->type));
        const double times = scalar(alpha, scalar_kind), keep = scalar(beta, scalar_kind);
        if (out.numel() == 0) return;
        const bool plain = times != 0 && type == out.scalar_type() && type == scalar_type(a->type) && type == scalar_type(b->type) && type != at::kInt;
        if (plain && batches == 1)
            out[0].addmm_(view(*a, 1)[0], view(*b, 1)[0], keep, times);
        else
            combine(out, times, keep, [&] { return product(*a, *b, batches, type); });
    });
}

int dice_cpu_geam(const Matrix* a, const Matrix* b, const Matrix* c, const void* alpha, const void* beta, int scalar_kind) {
    return status_of([&] {
        const double first = scalar(alpha, scalar_kind), second = scalar(beta, scalar_kind);
        const at::Tensor out = view(*c, 1);
        at::Tensor result = first == 0 ? at::zeros_like(out) : scaled(view(*a, 1), first);
        if (second != 0) result = result + scaled(view(*b, 1), second);
        out.copy_(result);
    });
}

int dice_cpu_syrk(const Matrix* a, const Matrix* b, const Matrix* c, int lower, const void* alpha, const void* beta, int scalar_kind) {
    return status_of([&] {
        const at::Tensor out = view(*c, 1)[0], before = out.clone();
        const double times = scalar(alpha, scalar_kind), keep = scalar(beta, scalar_kind);
        combine(out, times, keep, [&] { return product(*a, *b, 1, out.scalar_type())[0]; });
        out.copy_(lower != 0 ? at::tril(out) + at::triu(before, 1) : at::triu(out) + at::tril(before, -1));
    });
}

int dice_cpu_triangular(const Matrix* a, const Matrix* b, int left, int upper, int unit, const void* alpha, int scalar_kind) {
    return status_of([&] {
        const at::Tensor out = view(*b, 1)[0];
        const double times = scalar(alpha, scalar_kind);
        rescale(out, times);
        if (times != 0) out.copy_(at::linalg_solve_triangular(view(*a, 1)[0], out, upper != 0, left != 0, unit != 0));
    });
}

int dice_cpu_symmetric(const Matrix* a, const Matrix* b, const Matrix* c, int left, int lower, const void* alpha, const void* beta, int scalar_kind) {
    return status_of([&] {
        const at::Tensor full = symmetric(*a, lower != 0), other = view(*b, 1)[0], out = view(*c, 1)[0];
        const double times = scalar(alpha, scalar_kind), keep = scalar(beta, scalar_kind);
        combine(out, times, keep, [&] { return left != 0 ? at::matmul(full, other) : at::matmul(other, full); });
    });
}

int dice_cpu_epilogue(const Matrix* d, int64_t batches, int epilogue, const void* bias, int bias_type, int64_t bias_stride) {
    if ((epilogue & ~(CUBLASLT_EPILOGUE_RELU | CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_GELU | 1)) != 0)
        dice_cpu_unsupported("a cublasLtMatmul epilogue other than bias, ReLU and GELU");
    if ((epilogue & CUBLASLT_EPILOGUE_BIAS) != 0 && bias == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
    return status_of([&] {
        const at::Tensor out = view(*d, batches);
        at::Tensor result = out.to(out.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
        if ((epilogue & CUBLASLT_EPILOGUE_BIAS) != 0)
            result = result + at::from_blob(const_cast<void*>(bias), {batches, d->rows, 1}, {bias_stride, 1, 1}, scalar_type(bias_type));
        if ((epilogue & CUBLASLT_EPILOGUE_RELU) != 0) result = at::relu(result);
        if ((epilogue & CUBLASLT_EPILOGUE_GELU) != 0) result = at::gelu(result, "tanh");
        out.copy_(result);
    });
}
}
