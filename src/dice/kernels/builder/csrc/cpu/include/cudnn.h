// cuDNN's descriptor interface on the CPU: convolution, activation, softmax, pooling, batch and layer-wise tensor
// arithmetic, carried out by PyTorch's CPU operators in the runtime library. The graph interface is absent.
#pragma once

#include "cuda_runtime_api.h"

#define CUDNN_MAJOR 9
#define CUDNN_MINOR 0
#define CUDNN_PATCHLEVEL 0
#define CUDNN_VERSION 90000
#define CUDNN_DIM_MAX 8
#define CUDNN_BN_MIN_EPSILON 0.0

#define DICE_CPU_CUDNN_STATUSES(X)                                                                            \
    X(CUDNN_STATUS_SUCCESS, 0) X(CUDNN_STATUS_NOT_INITIALIZED, 1001) X(CUDNN_STATUS_BAD_PARAM, 2000)          \
    X(CUDNN_STATUS_NOT_SUPPORTED, 3000) X(CUDNN_STATUS_INTERNAL_ERROR, 4000) X(CUDNN_STATUS_EXECUTION_FAILED, 5000)
enum cudnnStatus_t {
#define DICE_CPU_ENUMERATOR(name, number) name = number,
    DICE_CPU_CUDNN_STATUSES(DICE_CPU_ENUMERATOR)
#undef DICE_CPU_ENUMERATOR
    CUDNN_STATUS_ALLOC_FAILED = 4001
};
enum cudnnDataType_t { CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF, CUDNN_DATA_INT8, CUDNN_DATA_INT32, CUDNN_DATA_BFLOAT16 = 9, CUDNN_DATA_INT64 = 10 };
enum cudnnMathType_t { CUDNN_DEFAULT_MATH, CUDNN_TENSOR_OP_MATH, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION, CUDNN_FMA_MATH };
enum cudnnTensorFormat_t { CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC };
enum cudnnConvolutionMode_t { CUDNN_CONVOLUTION, CUDNN_CROSS_CORRELATION };
enum cudnnNanPropagation_t { CUDNN_NOT_PROPAGATE_NAN, CUDNN_PROPAGATE_NAN };
enum cudnnDeterminism_t { CUDNN_NON_DETERMINISTIC, CUDNN_DETERMINISTIC };
enum cudnnActivationMode_t { CUDNN_ACTIVATION_SIGMOID, CUDNN_ACTIVATION_RELU, CUDNN_ACTIVATION_TANH, CUDNN_ACTIVATION_CLIPPED_RELU, CUDNN_ACTIVATION_ELU, CUDNN_ACTIVATION_IDENTITY, CUDNN_ACTIVATION_SWISH };
enum cudnnSoftmaxAlgorithm_t { CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_LOG };
enum cudnnSoftmaxMode_t { CUDNN_SOFTMAX_MODE_INSTANCE, CUDNN_SOFTMAX_MODE_CHANNEL };
enum cudnnPoolingMode_t { CUDNN_POOLING_MAX, CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, CUDNN_POOLING_MAX_DETERMINISTIC };
enum cudnnBatchNormMode_t { CUDNN_BATCHNORM_PER_ACTIVATION, CUDNN_BATCHNORM_SPATIAL, CUDNN_BATCHNORM_SPATIAL_PERSISTENT };
enum cudnnOpTensorOp_t { CUDNN_OP_TENSOR_ADD, CUDNN_OP_TENSOR_MUL, CUDNN_OP_TENSOR_MIN, CUDNN_OP_TENSOR_MAX, CUDNN_OP_TENSOR_SQRT, CUDNN_OP_TENSOR_NOT };
enum cudnnReduceTensorOp_t { CUDNN_REDUCE_TENSOR_ADD, CUDNN_REDUCE_TENSOR_MUL, CUDNN_REDUCE_TENSOR_MIN, CUDNN_REDUCE_TENSOR_MAX, CUDNN_REDUCE_TENSOR_AMAX, CUDNN_REDUCE_TENSOR_AVG, CUDNN_REDUCE_TENSOR_NORM1, CUDNN_REDUCE_TENSOR_NORM2 };
enum cudnnReduceTensorIndices_t { CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_REDUCE_TENSOR_FLATTENED_INDICES };
enum cudnnIndicesType_t { CUDNN_32BIT_INDICES, CUDNN_64BIT_INDICES };
enum cudnnReorderType_t { CUDNN_DEFAULT_REORDER, CUDNN_NO_REORDER };
enum cudnnConvolutionFwdAlgo_t {
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_DIRECT,
    CUDNN_CONVOLUTION_FWD_ALGO_FFT, CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, CUDNN_CONVOLUTION_FWD_ALGO_COUNT
};
enum cudnnConvolutionBwdDataAlgo_t {
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT
};
enum cudnnConvolutionBwdFilterAlgo_t {
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT
};
enum cudnnConvolutionFwdPreference_t { CUDNN_CONVOLUTION_FWD_NO_WORKSPACE, CUDNN_CONVOLUTION_FWD_PREFER_FASTEST, CUDNN_CONVOLUTION_FWD_SPECIFY_WORKSPACE_LIMIT };
#define DICE_CPU_PERF(name, algorithm)                                                                        \
    struct name {                                                                                             \
        algorithm algo;                                                                                       \
        cudnnStatus_t status;                                                                                 \
        float time;                                                                                           \
        size_t memory;                                                                                        \
        cudnnDeterminism_t determinism;                                                                       \
        cudnnMathType_t mathType;                                                                             \
        int reserved[3];                                                                                      \
    };
DICE_CPU_PERF(cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgo_t)
DICE_CPU_PERF(cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t)
DICE_CPU_PERF(cudnnConvolutionBwdFilterAlgoPerf_t, cudnnConvolutionBwdFilterAlgo_t)
#undef DICE_CPU_PERF

struct cudnnContext {};
struct cudnnTensorStruct { int type, n, size[CUDNN_DIM_MAX], stride[CUDNN_DIM_MAX]; };
struct cudnnFilterStruct { int type, format, n, size[CUDNN_DIM_MAX]; };
struct cudnnConvolutionStruct { int n, pad[CUDNN_DIM_MAX], stride[CUDNN_DIM_MAX], dilation[CUDNN_DIM_MAX], mode, groups; };
struct cudnnActivationStruct { int mode; double coefficient; };
struct cudnnPoolingStruct { int mode, n, window[CUDNN_DIM_MAX], pad[CUDNN_DIM_MAX], stride[CUDNN_DIM_MAX]; };
struct cudnnOpTensorStruct { int operation; };
struct cudnnReduceTensorStruct { int operation; };
typedef cudnnContext* cudnnHandle_t;
typedef cudnnTensorStruct* cudnnTensorDescriptor_t;
typedef cudnnFilterStruct* cudnnFilterDescriptor_t;
typedef cudnnConvolutionStruct* cudnnConvolutionDescriptor_t;
typedef cudnnActivationStruct* cudnnActivationDescriptor_t;
typedef cudnnPoolingStruct* cudnnPoolingDescriptor_t;
typedef cudnnOpTensorStruct* cudnnOpTensorDescriptor_t;
typedef cudnnReduceTensorStruct* cudnnReduceTensorDescriptor_t;

DICE_CPU_API cudnnHandle_t dice_cpu_dnn_default();
DICE_CPU_API int dice_cpu_convolution_shape(const cudnnConvolutionStruct*, const cudnnTensorStruct* x, const cudnnFilterStruct* w, int n, int* shape);
DICE_CPU_API int dice_cpu_convolution(const cudnnConvolutionStruct*, const void* alpha, const cudnnTensorStruct* xd, const void* x, const cudnnFilterStruct* wd, const void* w, const void* beta,
                                      const cudnnTensorStruct* yd, void* y);
DICE_CPU_API int dice_cpu_convolution_bias(const cudnnConvolutionStruct*, const void* alpha1, const cudnnTensorStruct* xd, const void* x, const cudnnFilterStruct* wd, const void* w, const void* alpha2,
                                           const cudnnTensorStruct* zd, const void* z, const cudnnTensorStruct* bd, const void* bias, const cudnnActivationStruct* activation, const cudnnTensorStruct* yd, void* y);
DICE_CPU_API int dice_cpu_convolution_data(const cudnnConvolutionStruct*, const void* alpha, const cudnnFilterStruct* wd, const void* w, const cudnnTensorStruct* dyd, const void* dy, const void* beta,
                                           const cudnnTensorStruct* dxd, void* dx);
DICE_CPU_API int dice_cpu_convolution_filter(const cudnnConvolutionStruct*, const void* alpha, const cudnnTensorStruct* xd, const void* x, const cudnnTensorStruct* dyd, const void* dy, const void* beta,
                                             const cudnnFilterStruct* dwd, void* dw);
DICE_CPU_API int dice_cpu_activation(const cudnnActivationStruct*, const void* alpha, const cudnnTensorStruct* xd, const void* x, const void* beta, const cudnnTensorStruct* yd, void* y);
DICE_CPU_API int dice_cpu_softmax(int log, int channel, const void* alpha, const cudnnTensorStruct* xd, const void* x, const void* beta, const cudnnTensorStruct* yd, void* y);
DICE_CPU_API int dice_cpu_pooling(const cudnnPoolingStruct*, const void* alpha, const cudnnTensorStruct* xd, const void* x, const void* beta, const cudnnTensorStruct* yd, void* y);
DICE_CPU_API int dice_cpu_batch_norm(int per_activation, const void* alpha, const void* beta, const cudnnTensorStruct* xd, const void* x, const cudnnTensorStruct* yd, void* y, const cudnnTensorStruct* pd,
                                     const void* scale, const void* bias, void* mean, void* variance, double momentum, double epsilon, void* saved_mean, void* saved_inverse, int training);
DICE_CPU_API int dice_cpu_tensor_operation(int operation, const void* alpha1, const cudnnTensorStruct* ad, const void* a, const void* alpha2, const cudnnTensorStruct* bd, const void* b, const void* beta,
                                           const cudnnTensorStruct* cd, void* c);
DICE_CPU_API int dice_cpu_reduce(int operation, const void* alpha, const cudnnTensorStruct* ad, const void* a, const void* beta, const cudnnTensorStruct* cd, void* c);
DICE_CPU_API int dice_cpu_fill(const cudnnTensorStruct* yd, void* y, const void* value, int scale);

#pragma GCC visibility push(hidden)

namespace dice_cpu {
DICE_CPU_INLINE cudnnStatus_t dnn(int status) { return static_cast<cudnnStatus_t>(status); }
template <class D> DICE_CPU_INLINE cudnnStatus_t make(D** descriptor) { return *descriptor = new D{}, CUDNN_STATUS_SUCCESS; }
template <class D> DICE_CPU_INLINE cudnnStatus_t destroy(D* descriptor) { return delete descriptor, CUDNN_STATUS_SUCCESS; }
DICE_CPU_INLINE void copy(int n, const int* from, int* to) {
    for (int i = 0; i < n; ++i) to[i] = from[i];
}
template <class P, class A> DICE_CPU_INLINE cudnnStatus_t one_algorithm(int requested, int* returned, P* results, A algorithm) {
    if (requested < 1) return CUDNN_STATUS_BAD_PARAM;
    results[0] = P{algorithm, CUDNN_STATUS_SUCCESS, 0.1f, 0, CUDNN_DETERMINISTIC, CUDNN_DEFAULT_MATH, {}};
    return *returned = 1, CUDNN_STATUS_SUCCESS;
}
}  // namespace dice_cpu

DICE_CPU_INLINE const char* cudnnGetErrorString(cudnnStatus_t status) {
    switch (status) {
#define DICE_CPU_NAME(name, number) case name: return #name;
        DICE_CPU_CUDNN_STATUSES(DICE_CPU_NAME)
#undef DICE_CPU_NAME
        default: return "CUDNN_STATUS_UNKNOWN";
    }
}
DICE_CPU_INLINE size_t cudnnGetVersion() { return CUDNN_VERSION; }
DICE_CPU_INLINE size_t cudnnGetCudartVersion() { return CUDART_VERSION; }
DICE_CPU_INLINE cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) { return *handle = dice_cpu_dnn_default(), CUDNN_STATUS_SUCCESS; }
DICE_CPU_INLINE cudnnStatus_t cudnnDestroy(cudnnHandle_t) { return CUDNN_STATUS_SUCCESS; }
DICE_CPU_INLINE cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t) { return CUDNN_STATUS_SUCCESS; }
DICE_CPU_INLINE cudnnStatus_t cudnnGetStream(cudnnHandle_t, cudaStream_t* stream) { return *stream = nullptr, CUDNN_STATUS_SUCCESS; }

// Descriptors.
DICE_CPU_INLINE cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* d) { return dice_cpu::make(d); }
DICE_CPU_INLINE cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t d) { return dice_cpu::destroy(d); }
DICE_CPU_INLINE cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t d, cudnnDataType_t type, int n, const int size[], const int stride[]) {
    if (n < 1 || n > CUDNN_DIM_MAX) return CUDNN_STATUS_NOT_SUPPORTED;
    d->type = type, d->n = n;
    dice_cpu::copy(n, size, d->size), dice_cpu::copy(n, stride, d->stride);
    return CUDNN_STATUS_SUCCESS;
}
DICE_CPU_INLINE cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t d, cudnnTensorFormat_t format, cudnnDataType_t type, int n, const int size[]) {
    if (n < 3 || n > CUDNN_DIM_MAX) return CUDNN_STATUS_NOT_SUPPORTED;
    int stride[CUDNN_DIM_MAX], step = 1;
    if (format == CUDNN_TENSOR_NHWC) stride[1] = 1, step = size[1];
    for (int i = n - 1; i >= 0; --i)
        if (format == CUDNN_TENSOR_NCHW || i != 1) stride[i] = step, step *= size[i];
    return cudnnSetTensorNdDescriptor(d, type, n, size, stride);
}
DICE_CPU_INLINE cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t d, cudnnTensorFormat_t format, cudnnDataType_t type, int n, int c, int h, int w) {
    const int size[] = {n, c, h, w};
    return cudnnSetTensorNdDescriptorEx(d, format, type, 4, size);
}
DICE_CPU_INLINE cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t d, cudnnDataType_t type, int n, int c, int h, int w, int ns, int cs, int hs, int ws) {
    const int size[] = {n, c, h, w}, stride[] = {ns, cs, hs, ws};
    return cudnnSetTensorNdDescriptor(d, type, 4, size, stride);
}
DICE_CPU_INLINE cudnnStatus_t cudnnGetTensor4dDescriptor(cudnnTensorDescriptor_t d, cudnnDataType_t* type, int* n, int* c, int* h, int* w, int* ns, int* cs, int* hs, int* ws) {
    *type = static_cast<cudnnDataType_t>(d->type), *n = d->size[0], *c = d->size[1], *h = d->size[2], *w = d->size[3];
    *ns = d->stride[0], *cs = d->stride[1], *hs = d->stride[2], *ws = d->stride[3];
    return CUDNN_STATUS_SUCCESS;
}
DICE_CPU_INLINE cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* d) { return dice_cpu::make(d); }
DICE_CPU_INLINE cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t d) { return dice_cpu::destroy(d); }
DICE_CPU_INLINE cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t type, cudnnTensorFormat_t format, int n, const int size[]) {
    if (n < 3 || n > CUDNN_DIM_MAX) return CUDNN_STATUS_NOT_SUPPORTED;
    d->type = type, d->format = format, d->n = n;
    return dice_cpu::copy(n, size, d->size), CUDNN_STATUS_SUCCESS;
}
DICE_CPU_INLINE cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t type, cudnnTensorFormat_t format, int k, int c, int h, int w) {
    const int size[] = {k, c, h, w};
    return cudnnSetFilterNdDescriptor(d, type, format, 4, size);
}
DICE_CPU_INLINE cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* d) { return dice_cpu::make(d); }
DICE_CPU_INLINE cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t d) { return dice_cpu::destroy(d); }
DICE_CPU_INLINE cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t d, int n, const int pad[], const int stride[], const int dilation[], cudnnConvolutionMode_t mode, cudnnDataType_t) {
    if (n < 1 || n > CUDNN_DIM_MAX - 2) return CUDNN_STATUS_NOT_SUPPORTED;
    d->n = n, d->mode = mode, d->groups = 1;
    dice_cpu::copy(n, pad, d->pad), dice_cpu::copy(n, stride, d->stride), dice_cpu::copy(n, dilation, d->dilation);
    return CUDNN_STATUS_SUCCESS;
}
DICE_CPU_INLINE cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t d, int ph, int pw, int sh, int sw, int dh, int dw, cudnnConvolutionMode_t mode, cudnnDataType_t type) {
    const int pad[] = {ph, pw}, stride[] = {sh, sw}, dilation[] = {dh, dw};
    return cudnnSetConvolutionNdDescriptor(d, 2, pad, stride, dilation, mode, type);
}
DICE_CPU_INLINE cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t d, int groups) { return d->groups = groups, CUDNN_STATUS_SUCCESS; }
DICE_CPU_INLINE cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t, cudnnMathType_t) { return CUDNN_STATUS_SUCCESS; }
DICE_CPU_INLINE cudnnStatus_t cudnnSetConvolutionReorderType(cudnnConvolutionDescriptor_t, cudnnReorderType_t) { return CUDNN_STATUS_SUCCESS; }
DICE_CPU_INLINE cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* d) { return dice_cpu::make(d); }
DICE_CPU_INLINE cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t d) { return dice_cpu::destroy(d); }
DICE_CPU_INLINE cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t d, cudnnActivationMode_t mode, cudnnNanPropagation_t, double coefficient) { return *d = {mode, coefficient}, CUDNN_STATUS_SUCCESS; }
DICE_CPU_INLINE cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t* d) { return dice_cpu::make(d); }
DICE_CPU_INLINE cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t d) { return dice_cpu::destroy(d); }
DICE_CPU_INLINE cudnnStatus_t cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t d, cudnnPoolingMode_t mode, cudnnNanPropagation_t, int n, const int window[], const int pad[], const int stride[]) {
    if (n < 1 || n > CUDNN_DIM_MAX - 2) return CUDNN_STATUS_NOT_SUPPORTED;
    d->mode = mode, d->n = n;
    dice_cpu::copy(n, window, d->window), dice_cpu::copy(n, pad, d->pad), dice_cpu::copy(n, stride, d->stride);
    return CUDNN_STATUS_SUCCESS;
}
DICE_CPU_INLINE cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t d, cudnnPoolingMode_t mode, cudnnNanPropagation_t nan, int wh, int ww, int ph, int pw, int sh, int sw) {
    const int window[] = {wh, ww}, pad[] = {ph, pw}, stride[] = {sh, sw};
    return cudnnSetPoolingNdDescriptor(d, mode, nan, 2, window, pad, stride);
}
DICE_CPU_INLINE cudnnStatus_t cudnnGetPooling2dForwardOutputDim(cudnnPoolingDescriptor_t d, cudnnTensorDescriptor_t x, int* n, int* c, int* h, int* w) {
    *n = x->size[0], *c = x->size[1];
    *h = 1 + (x->size[2] + 2 * d->pad[0] - d->window[0]) / d->stride[0];
    *w = 1 + (x->size[3] + 2 * d->pad[1] - d->window[1]) / d->stride[1];
    return CUDNN_STATUS_SUCCESS;
}
DICE_CPU_INLINE cudnnStatus_t cudnnCreateOpTensorDescriptor(cudnnOpTensorDescriptor_t* d) { return dice_cpu::make(d); }
DICE_CPU_INLINE cudnnStatus_t cudnnDestroyOpTensorDescriptor(cudnnOpTensorDescriptor_t d) { return dice_cpu::destroy(d); }
DICE_CPU_INLINE cudnnStatus_t cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t d, cudnnOpTensorOp_t operation, cudnnDataType_t, cudnnNanPropagation_t) { return d->operation = operation, CUDNN_STATUS_SUCCESS; }
DICE_CPU_INLINE cudnnStatus_t cudnnCreateReduceTensorDescriptor(cudnnReduceTensorDescriptor_t* d) { return dice_cpu::make(d); }
DICE_CPU_INLINE cudnnStatus_t cudnnDestroyReduceTensorDescriptor(cudnnReduceTensorDescriptor_t d) { return dice_cpu::destroy(d); }
DICE_CPU_INLINE cudnnStatus_t cudnnSetReduceTensorDescriptor(cudnnReduceTensorDescriptor_t d, cudnnReduceTensorOp_t operation, cudnnDataType_t, cudnnNanPropagation_t, cudnnReduceTensorIndices_t, cudnnIndicesType_t) {
    return d->operation = operation, CUDNN_STATUS_SUCCESS;
}
DICE_CPU_INLINE cudnnStatus_t cudnnGetReductionWorkspaceSize(cudnnHandle_t, cudnnReduceTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, size_t* bytes) { return *bytes = 0, CUDNN_STATUS_SUCCESS; }
DICE_CPU_INLINE cudnnStatus_t cudnnGetReductionIndicesSize(cudnnHandle_t, cudnnReduceTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, size_t* bytes) { return *bytes = 0, CUDNN_STATUS_SUCCESS; }
DICE_CPU_INLINE cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t d, cudnnTensorDescriptor_t x, cudnnBatchNormMode_t mode) {
    int size[CUDNN_DIM_MAX];
    for (int i = 0; i < x->n; ++i) size[i] = i == 1 || (i > 1 && mode == CUDNN_BATCHNORM_PER_ACTIVATION) ? x->size[i] : 1;
    return cudnnSetTensorNdDescriptorEx(d, CUDNN_TENSOR_NCHW, x->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, x->n, size);
}

// Algorithms: there is one of each, and it needs no workspace.
#define DICE_CPU_ALGORITHMS(Name, name, First, Second, Third, perf, algorithm, first)                                                                                          \
    DICE_CPU_INLINE cudnnStatus_t cudnnGetConvolution##Name##Algorithm_v7(cudnnHandle_t, First, Second, cudnnConvolutionDescriptor_t, Third, int requested, int* returned, perf* results) { \
        return dice_cpu::one_algorithm(requested, returned, results, first);                                                                                                    \
    }                                                                                                                                                                           \
    DICE_CPU_INLINE cudnnStatus_t cudnnFindConvolution##Name##Algorithm(cudnnHandle_t, First, Second, cudnnConvolutionDescriptor_t, Third, int requested, int* returned, perf* results) { \
        return dice_cpu::one_algorithm(requested, returned, results, first);                                                                                                    \
    }                                                                                                                                                                           \
    DICE_CPU_INLINE cudnnStatus_t cudnnGetConvolution##Name##AlgorithmMaxCount(cudnnHandle_t, int* count) { return *count = 1, CUDNN_STATUS_SUCCESS; }                          \
    DICE_CPU_INLINE cudnnStatus_t cudnnGetConvolution##Name##WorkspaceSize(cudnnHandle_t, First, Second, cudnnConvolutionDescriptor_t, Third, algorithm, size_t* bytes) {        \
        return *bytes = 0, CUDNN_STATUS_SUCCESS;                                                                                                                                \
    }
DICE_CPU_ALGORITHMS(Forward, , cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t, cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgo_t, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM)
DICE_CPU_ALGORITHMS(BackwardData, , cudnnFilterDescriptor_t, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1)
DICE_CPU_ALGORITHMS(BackwardFilter, , cudnnTensorDescriptor_t, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, cudnnConvolutionBwdFilterAlgoPerf_t, cudnnConvolutionBwdFilterAlgo_t, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1)
#undef DICE_CPU_ALGORITHMS
DICE_CPU_INLINE cudnnStatus_t cudnnGetConvolutionNdForwardOutputDim(cudnnConvolutionDescriptor_t d, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w, int n, int shape[]) {
    return dice_cpu::dnn(dice_cpu_convolution_shape(d, x, w, n, shape));
}
DICE_CPU_INLINE cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(cudnnConvolutionDescriptor_t d, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t f, int* n, int* c, int* h, int* w) {
    int shape[4];
    const int status = dice_cpu_convolution_shape(d, x, f, 4, shape);
    *n = shape[0], *c = shape[1], *h = shape[2], *w = shape[3];
    return dice_cpu::dnn(status);
}

// Operations.
DICE_CPU_INLINE cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t, const void* alpha, cudnnTensorDescriptor_t xd, const void* x, cudnnFilterDescriptor_t wd, const void* w, cudnnConvolutionDescriptor_t d,
                                                      cudnnConvolutionFwdAlgo_t, void*, size_t, const void* beta, cudnnTensorDescriptor_t yd, void* y) {
    return dice_cpu::dnn(dice_cpu_convolution(d, alpha, xd, x, wd, w, beta, yd, y));
}
DICE_CPU_INLINE cudnnStatus_t cudnnConvolutionBiasActivationForward(cudnnHandle_t, const void* alpha1, cudnnTensorDescriptor_t xd, const void* x, cudnnFilterDescriptor_t wd, const void* w, cudnnConvolutionDescriptor_t d,
                                                                    cudnnConvolutionFwdAlgo_t, void*, size_t, const void* alpha2, cudnnTensorDescriptor_t zd, const void* z, cudnnTensorDescriptor_t bd, const void* bias,
                                                                    cudnnActivationDescriptor_t activation, cudnnTensorDescriptor_t yd, void* y) {
    return dice_cpu::dnn(dice_cpu_convolution_bias(d, alpha1, xd, x, wd, w, alpha2, zd, z, bd, bias, activation, yd, y));
}
DICE_CPU_INLINE cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t, const void* alpha, cudnnFilterDescriptor_t wd, const void* w, cudnnTensorDescriptor_t dyd, const void* dy, cudnnConvolutionDescriptor_t d,
                                                           cudnnConvolutionBwdDataAlgo_t, void*, size_t, const void* beta, cudnnTensorDescriptor_t dxd, void* dx) {
    return dice_cpu::dnn(dice_cpu_convolution_data(d, alpha, wd, w, dyd, dy, beta, dxd, dx));
}
DICE_CPU_INLINE cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t, const void* alpha, cudnnTensorDescriptor_t xd, const void* x, cudnnTensorDescriptor_t dyd, const void* dy, cudnnConvolutionDescriptor_t d,
                                                             cudnnConvolutionBwdFilterAlgo_t, void*, size_t, const void* beta, cudnnFilterDescriptor_t dwd, void* dw) {
    return dice_cpu::dnn(dice_cpu_convolution_filter(d, alpha, xd, x, dyd, dy, beta, dwd, dw));
}
DICE_CPU_INLINE cudnnStatus_t cudnnActivationForward(cudnnHandle_t, cudnnActivationDescriptor_t d, const void* alpha, cudnnTensorDescriptor_t xd, const void* x, const void* beta, cudnnTensorDescriptor_t yd, void* y) {
    return dice_cpu::dnn(dice_cpu_activation(d, alpha, xd, x, beta, yd, y));
}
DICE_CPU_INLINE cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t, cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode, const void* alpha, cudnnTensorDescriptor_t xd, const void* x, const void* beta,
                                                  cudnnTensorDescriptor_t yd, void* y) {
    return dice_cpu::dnn(dice_cpu_softmax(algorithm == CUDNN_SOFTMAX_LOG, mode == CUDNN_SOFTMAX_MODE_CHANNEL, alpha, xd, x, beta, yd, y));
}
DICE_CPU_INLINE cudnnStatus_t cudnnPoolingForward(cudnnHandle_t, cudnnPoolingDescriptor_t d, const void* alpha, cudnnTensorDescriptor_t xd, const void* x, const void* beta, cudnnTensorDescriptor_t yd, void* y) {
    return dice_cpu::dnn(dice_cpu_pooling(d, alpha, xd, x, beta, yd, y));
}
DICE_CPU_INLINE cudnnStatus_t cudnnBatchNormalizationForwardInference(cudnnHandle_t, cudnnBatchNormMode_t mode, const void* alpha, const void* beta, cudnnTensorDescriptor_t xd, const void* x, cudnnTensorDescriptor_t yd,
                                                                      void* y, cudnnTensorDescriptor_t pd, const void* scale, const void* bias, const void* mean, const void* variance, double epsilon) {
    return dice_cpu::dnn(dice_cpu_batch_norm(mode == CUDNN_BATCHNORM_PER_ACTIVATION, alpha, beta, xd, x, yd, y, pd, scale, bias, const_cast<void*>(mean), const_cast<void*>(variance), 0, epsilon, nullptr, nullptr, 0));
}
DICE_CPU_INLINE cudnnStatus_t cudnnBatchNormalizationForwardTraining(cudnnHandle_t, cudnnBatchNormMode_t mode, const void* alpha, const void* beta, cudnnTensorDescriptor_t xd, const void* x, cudnnTensorDescriptor_t yd,
                                                                     void* y, cudnnTensorDescriptor_t pd, const void* scale, const void* bias, double momentum, void* mean, void* variance, double epsilon, void* saved_mean,
                                                                     void* saved_inverse) {
    return dice_cpu::dnn(dice_cpu_batch_norm(mode == CUDNN_BATCHNORM_PER_ACTIVATION, alpha, beta, xd, x, yd, y, pd, scale, bias, mean, variance, momentum, epsilon, saved_mean, saved_inverse, 1));
}
DICE_CPU_INLINE cudnnStatus_t cudnnAddTensor(cudnnHandle_t, const void* alpha, cudnnTensorDescriptor_t ad, const void* a, const void* beta, cudnnTensorDescriptor_t cd, void* c) {
    const double zero = 0;
    return dice_cpu::dnn(dice_cpu_tensor_operation(CUDNN_OP_TENSOR_ADD, alpha, ad, a, &zero, ad, a, beta, cd, c));
}
DICE_CPU_INLINE cudnnStatus_t cudnnOpTensor(cudnnHandle_t, cudnnOpTensorDescriptor_t d, const void* alpha1, cudnnTensorDescriptor_t ad, const void* a, const void* alpha2, cudnnTensorDescriptor_t bd, const void* b,
                                            const void* beta, cudnnTensorDescriptor_t cd, void* c) {
    return dice_cpu::dnn(dice_cpu_tensor_operation(d->operation, alpha1, ad, a, alpha2, bd, b, beta, cd, c));
}
DICE_CPU_INLINE cudnnStatus_t cudnnTransformTensor(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t xd, const void* x, const void* beta, cudnnTensorDescriptor_t yd, void* y) {
    return cudnnAddTensor(handle, alpha, xd, x, beta, yd, y);
}
DICE_CPU_INLINE cudnnStatus_t cudnnReduceTensor(cudnnHandle_t, cudnnReduceTensorDescriptor_t d, void*, size_t, void*, size_t, const void* alpha, cudnnTensorDescriptor_t ad, const void* a, const void* beta,
                                                cudnnTensorDescriptor_t cd, void* c) {
    return dice_cpu::dnn(dice_cpu_reduce(d->operation, alpha, ad, a, beta, cd, c));
}
DICE_CPU_INLINE cudnnStatus_t cudnnSetTensor(cudnnHandle_t, cudnnTensorDescriptor_t yd, void* y, const void* value) { return dice_cpu::dnn(dice_cpu_fill(yd, y, value, 0)); }
DICE_CPU_INLINE cudnnStatus_t cudnnScaleTensor(cudnnHandle_t, cudnnTensorDescriptor_t yd, void* y, const void* alpha) { return dice_cpu::dnn(dice_cpu_fill(yd, y, alpha, 1)); }

#pragma GCC visibility pop
