// cuBLAS, cublasLt, cuDNN, CUB, Thrust, wmma.
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cudnn/Handle.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cublas_v2.h>
#include <cublasLt.h>
#include <cudnn.h>
#include <mma.h>
#include <cub/cub.cuh>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#define CUBLAS(x) TORCH_CUDABLAS_CHECK(x)
#define CUDNN(x) TORCH_CHECK((x) == CUDNN_STATUS_SUCCESS, #x)

// Row-major C = op(A) op(B) by column-major calls.
torch::Tensor gemm(torch::Tensor a, torch::Tensor b, bool ta, bool tb, double alpha, double beta, torch::Tensor c) {
    const int m = ta ? a.size(1) : a.size(0), k = ta ? a.size(0) : a.size(1), n = tb ? b.size(0) : b.size(1);
    auto out = c.clone();
    cublasHandle_t handle = at::cuda::getCurrentCUDABlasHandle();
    CUBLAS(cublasSetStream(handle, at::cuda::getCurrentCUDAStream()));
    const auto oa = ta ? CUBLAS_OP_T : CUBLAS_OP_N, ob = tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int lda = a.size(1), ldb = b.size(1);
    const float fa = alpha, fb = beta;
    if (a.scalar_type() == torch::kFloat)
        CUBLAS(cublasSgemm(handle, ob, oa, n, m, k, &fa, b.data_ptr<float>(), ldb, a.data_ptr<float>(), lda, &fb, out.data_ptr<float>(), n));
    else if (a.scalar_type() == torch::kDouble)
        CUBLAS(cublasDgemm(handle, ob, oa, n, m, k, &alpha, b.data_ptr<double>(), ldb, a.data_ptr<double>(), lda, &beta, out.data_ptr<double>(), n));
    else
        CUBLAS(cublasGemmEx(handle, ob, oa, n, m, k, &fa, b.data_ptr<at::Half>(), CUDA_R_16F, ldb, a.data_ptr<at::Half>(), CUDA_R_16F, lda, &fb,
                            out.data_ptr<at::Half>(), CUDA_R_16F, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT_TENSOR_OP));
    return out;
}
torch::Tensor batched(torch::Tensor a, torch::Tensor b) {
    const int s = a.size(0), m = a.size(1), k = a.size(2), n = b.size(2);
    auto out = torch::empty({s, m, n}, a.options());
    cublasHandle_t handle;
    CUBLAS(cublasCreate(&handle));
    const float one = 1, zero = 0;
    CUBLAS(cublasSgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b.data_ptr<float>(), n, (long long)k * n, a.data_ptr<float>(), k,
                                     (long long)m * k, &zero, out.data_ptr<float>(), n, (long long)m * n, s));
    CUBLAS(cublasDestroy(handle));
    return out;
}
std::vector<torch::Tensor> vectors(torch::Tensor a, torch::Tensor x, torch::Tensor y0) {
    auto handle = at::cuda::getCurrentCUDABlasHandle();
    auto y = y0.clone(), z = y0.clone(), w = x.clone(), g = a.clone();
    const float two = 2, half = 0.5f;
    const int m = a.size(0), n = a.size(1);
    CUBLAS(cublasSgemv(handle, CUBLAS_OP_T, n, m, &two, a.data_ptr<float>(), n, x.data_ptr<float>(), 1, &half, y.data_ptr<float>(), 1));
    CUBLAS(cublasSaxpy(handle, m, &two, y0.data_ptr<float>(), 1, z.data_ptr<float>(), 1));
    CUBLAS(cublasSscal(handle, n, &half, w.data_ptr<float>(), 1));
    CUBLAS(cublasSger(handle, n, m, &two, x.data_ptr<float>(), 1, y0.data_ptr<float>(), 1, g.data_ptr<float>(), n));
    float dot, norm, sum;
    int index;
    CUBLAS(cublasSdot(handle, n, x.data_ptr<float>(), 1, x.data_ptr<float>(), 1, &dot));
    CUBLAS(cublasSnrm2(handle, n, x.data_ptr<float>(), 1, &norm));
    CUBLAS(cublasSasum(handle, n, x.data_ptr<float>(), 1, &sum));
    CUBLAS(cublasIsamax(handle, n, x.data_ptr<float>(), 1, &index));
    TORCH_CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &two, x.data_ptr<float>(), 1, x.data_ptr<float>(), 4, &half, y.data_ptr<float>(), 4) == CUBLAS_STATUS_INVALID_VALUE);
    return {y, z, w, g, torch::tensor({dot, norm, sum, (float)index})};
}
torch::Tensor linear(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, int64_t activation) {
    const int M = x.size(0), K = x.size(1), N = weight.size(0);
    auto out = torch::empty({M, N}, x.options());
    const float alpha = 1, beta = 0;
    cublasLtMatmulDesc_t desc;
    CUBLAS(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    cublasOperation_t t = CUBLAS_OP_T;
    CUBLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &t, sizeof(t)));
    cublasLtEpilogue_t epilogue = activation == 0 ? CUBLASLT_EPILOGUE_BIAS : activation == 1 ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_GELU_BIAS;
    CUBLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)));
    const void* pointer = bias.data_ptr();
    CUBLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &pointer, sizeof(pointer)));
    const auto type = x.scalar_type() == torch::kHalf ? CUDA_R_16F : CUDA_R_32F;
    cublasLtMatrixLayout_t a, b, c;
    CUBLAS(cublasLtMatrixLayoutCreate(&a, type, K, N, K));
    CUBLAS(cublasLtMatrixLayoutCreate(&b, type, K, M, K));
    CUBLAS(cublasLtMatrixLayoutCreate(&c, type, N, M, N));
    cublasLtMatmulPreference_t preference;
    CUBLAS(cublasLtMatmulPreferenceCreate(&preference));
    size_t bytes = 1 << 20;
    CUBLAS(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes)));
    cublasLtMatmulHeuristicResult_t heuristic;
    int found = 0;
    CUBLAS(cublasLtMatmulAlgoGetHeuristic(at::cuda::getCurrentCUDABlasLtHandle(), desc, a, b, c, c, preference, 1, &heuristic, &found));
    auto workspace = c10::cuda::CUDACachingAllocator::get()->allocate(bytes);
    CUBLAS(cublasLtMatmul(at::cuda::getCurrentCUDABlasLtHandle(), desc, &alpha, weight.data_ptr(), a, x.data_ptr(), b, &beta, out.data_ptr(), c,
                          out.data_ptr(), c, &heuristic.algo, workspace.get(), bytes, at::cuda::getCurrentCUDAStream()));
    cublasLtMatmulPreferenceDestroy(preference);
    cublasLtMatrixLayoutDestroy(a);
    cublasLtMatrixLayoutDestroy(b);
    cublasLtMatrixLayoutDestroy(c);
    cublasLtMatmulDescDestroy(desc);
    return out;
}

struct Descriptor {
    cudnnTensorDescriptor_t d;
    explicit Descriptor(torch::Tensor t) {
        CUDNN(cudnnCreateTensorDescriptor(&d));
        CUDNN(cudnnSetTensor4dDescriptor(d, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, t.size(0), t.size(1), t.size(2), t.size(3)));
    }
    ~Descriptor() { cudnnDestroyTensorDescriptor(d); }
};
torch::Tensor convolution(torch::Tensor x, torch::Tensor w, int64_t pad, int64_t stride, int64_t groups) {
    cudnnHandle_t handle;
    CUDNN(cudnnCreate(&handle));
    cudnnFilterDescriptor_t filter;
    cudnnConvolutionDescriptor_t conv;
    CUDNN(cudnnCreateFilterDescriptor(&filter));
    CUDNN(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, w.size(0), w.size(1), w.size(2), w.size(3)));
    CUDNN(cudnnCreateConvolutionDescriptor(&conv));
    CUDNN(cudnnSetConvolution2dDescriptor(conv, pad, pad, stride, stride, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    CUDNN(cudnnSetConvolutionGroupCount(conv, groups));
    Descriptor xd(x);
    int n, c, h, ww;
    CUDNN(cudnnGetConvolution2dForwardOutputDim(conv, xd.d, filter, &n, &c, &h, &ww));
    auto y = torch::empty({n, c, h, ww}, x.options());
    Descriptor yd(y);
    cudnnConvolutionFwdAlgoPerf_t perf;
    int count = 0;
    CUDNN(cudnnGetConvolutionForwardAlgorithm_v7(handle, xd.d, filter, conv, yd.d, 1, &count, &perf));
    size_t bytes = 1;
    CUDNN(cudnnGetConvolutionForwardWorkspaceSize(handle, xd.d, filter, conv, yd.d, perf.algo, &bytes));
    const float one = 1, zero = 0;
    CUDNN(cudnnConvolutionForward(handle, &one, xd.d, x.data_ptr(), filter, w.data_ptr(), conv, perf.algo, nullptr, bytes, &zero, yd.d, y.data_ptr()));
    cudnnDestroyFilterDescriptor(filter);
    cudnnDestroyConvolutionDescriptor(conv);
    cudnnDestroy(handle);
    return y;
}
std::vector<torch::Tensor> neural(torch::Tensor x, torch::Tensor scale, torch::Tensor shift, torch::Tensor mean, torch::Tensor variance) {
    auto handle = at::native::getCudnnHandle();
    const float one = 1, zero = 0;
    Descriptor xd(x);
    auto relu = torch::empty_like(x), soft = torch::empty_like(x), norm = torch::empty_like(x), sum = x.clone();
    cudnnActivationDescriptor_t activation;
    CUDNN(cudnnCreateActivationDescriptor(&activation));
    CUDNN(cudnnSetActivationDescriptor(activation, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0.0));
    CUDNN(cudnnActivationForward(handle, activation, &one, xd.d, x.data_ptr(), &zero, xd.d, relu.data_ptr()));
    cudnnDestroyActivationDescriptor(activation);
    CUDNN(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one, xd.d, x.data_ptr(), &zero, xd.d, soft.data_ptr()));
    cudnnTensorDescriptor_t bn;
    cudnnCreateTensorDescriptor(&bn);
    CUDNN(cudnnDeriveBNTensorDescriptor(bn, xd.d, CUDNN_BATCHNORM_SPATIAL));
    CUDNN(cudnnBatchNormalizationForwardInference(handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, xd.d, x.data_ptr(), xd.d, norm.data_ptr(), bn, scale.data_ptr(),
                                                  shift.data_ptr(), mean.data_ptr(), variance.data_ptr(), 1e-5));
    CUDNN(cudnnAddTensor(handle, &one, bn, shift.data_ptr(), &one, xd.d, sum.data_ptr()));
    cudnnPoolingDescriptor_t pool;
    CUDNN(cudnnCreatePoolingDescriptor(&pool));
    CUDNN(cudnnSetPooling2dDescriptor(pool, CUDNN_POOLING_MAX, CUDNN_NOT_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2));
    int n, c, h, w;
    CUDNN(cudnnGetPooling2dForwardOutputDim(pool, xd.d, &n, &c, &h, &w));
    auto pooled = torch::empty({n, c, h, w}, x.options());
    Descriptor pd(pooled);
    CUDNN(cudnnPoolingForward(handle, pool, &one, xd.d, x.data_ptr(), &zero, pd.d, pooled.data_ptr()));
    return {relu, soft, norm, sum, pooled};
}

template <int THREADS>
__global__ void cub_kernel(const float* x, float* sums, float* scans, float* maxima, int n) {
    using Reduce = cub::BlockReduce<float, THREADS>;
    using Scan = cub::BlockScan<float, THREADS>;
    using Warp = cub::WarpReduce<float>;
    __shared__ typename Reduce::TempStorage reduce;
    __shared__ typename Scan::TempStorage scan;
    __shared__ typename Warp::TempStorage warp[THREADS / 32];
    const int i = threadIdx.x, row = blockIdx.x;
    const float v = i < n ? x[row * n + i] : 0.f;
    const float total = Reduce(reduce).Sum(v);
    if (i == 0) sums[row] = total;
    __syncthreads();
    const float largest = Reduce(reduce).Reduce(v, cub::Max());
    if (i == 0) maxima[row] = largest;
    float s;
    Scan(scan).InclusiveSum(v, s);
    if (i < n) scans[row * n + i] = s;
    const float w = Warp(warp[i / 32]).Sum(v);
    if (i == 0) maxima[gridDim.x + row] = w;
}
std::vector<torch::Tensor> cub_blocks(torch::Tensor x) {
    const int rows = x.size(0), n = x.size(1);
    auto sums = torch::empty({rows}, x.options()), scans = torch::empty_like(x), maxima = torch::empty({2, rows}, x.options());
    cub_kernel<128><<<rows, 128>>>(x.data_ptr<float>(), sums.data_ptr<float>(), scans.data_ptr<float>(), maxima.data_ptr<float>(), n);
    return {sums, scans, maxima};
}
std::vector<torch::Tensor> device_algorithms(torch::Tensor x) {
    const int n = x.numel();
    auto total = torch::empty({1}, x.options()), scan = torch::empty_like(x), sorted = x.clone(), doubled = torch::empty_like(x);
    void* storage = nullptr;
    size_t bytes = 0;
    cub::DeviceReduce::Sum(storage, bytes, x.data_ptr<float>(), total.data_ptr<float>(), n);
    cudaMalloc(&storage, bytes);
    cub::DeviceReduce::Sum(storage, bytes, x.data_ptr<float>(), total.data_ptr<float>(), n);
    cudaFree(storage);
    thrust::device_ptr<float> p = thrust::device_pointer_cast(x.data_ptr<float>());
    thrust::inclusive_scan(thrust::device, p, p + n, scan.data_ptr<float>());
    thrust::sort(thrust::device, sorted.data_ptr<float>(), sorted.data_ptr<float>() + n, thrust::greater<float>());
    thrust::transform(p, p + n, doubled.data_ptr<float>(), [] __device__(float v) { return 2 * v; });
    const float largest = thrust::reduce(thrust::device, p, p + n, -1e30f, thrust::maximum<float>());
    return {total, scan, sorted, doubled, torch::tensor({largest})};
}

using namespace nvcuda;
__global__ void wmma_kernel(const half* a, const half* b, float* c, int M, int N, int K) {
    const int row = blockIdx.y * 16, col = blockIdx.x * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
    wmma::fill_fragment(acc, 0.0f);
    for (int k = 0; k < K; k += 16) {
        wmma::load_matrix_sync(fa, a + row * K + k, K);
        wmma::load_matrix_sync(fb, b + col * K + k, K);
        wmma::mma_sync(acc, fa, fb, acc);
    }
    for (int t = 0; t < acc.num_elements; ++t) acc.x[t] *= 2.0f;
    wmma::store_matrix_sync(c + row * N + col, acc, N, wmma::mem_row_major);
}
torch::Tensor tensor_cores(torch::Tensor a, torch::Tensor b) {
    const int M = a.size(0), K = a.size(1), N = b.size(0);
    auto c = torch::empty({M, N}, a.options().dtype(torch::kFloat));
    wmma_kernel<<<dim3(N / 16, M / 16), 32>>>((const half*)a.data_ptr<at::Half>(), (const half*)b.data_ptr<at::Half>(), c.data_ptr<float>(), M, N, K);
    return c;
}
