// Operators behind the cuDNN shim, through ATen.
#include <ATen/ATen.h>

#include <algorithm>
#include <functional>

#include "../include/cudnn.h"
#include "operators.h"

namespace {

at::ScalarType scalar_type(int type) {
    switch (type) {
        case CUDNN_DATA_FLOAT: return at::kFloat;
        case CUDNN_DATA_DOUBLE: return at::kDouble;
        case CUDNN_DATA_HALF: return at::kHalf;
        case CUDNN_DATA_BFLOAT16: return at::kBFloat16;
        case CUDNN_DATA_INT8: return at::kChar;
        case CUDNN_DATA_INT32: return at::kInt;
        case CUDNN_DATA_INT64: return at::kLong;
        default: dice_cpu_unsupported("a cuDNN data type");
    }
}

at::Tensor view(const cudnnTensorStruct* d, const void* data) {
    const std::vector<int64_t> sizes(d->size, d->size + d->n), strides(d->stride, d->stride + d->n);
    return at::from_blob(const_cast<void*>(data), sizes, strides, scalar_type(d->type));
}

at::Tensor view(const cudnnFilterStruct* d, const void* data) {
    const std::vector<int64_t> sizes(d->size, d->size + d->n);
    if (d->format == CUDNN_TENSOR_NCHW) return at::from_blob(const_cast<void*>(data), sizes, scalar_type(d->type));
    std::vector<int64_t> strides(sizes.size());
    int64_t step = sizes[1];
    strides[1] = 1;
    for (size_t i = sizes.size(); i-- > 0;)
        if (i != 1) strides[i] = step, step *= sizes[i];
    return at::from_blob(const_cast<void*>(data), sizes, strides, scalar_type(d->type));
}

// Scaling factors are double for double tensors and float for all others.
double factor(const void* value, int type) { return type == CUDNN_DATA_DOUBLE ? *static_cast<const double*>(value) : *static_cast<const float*>(value); }

// 16-bit tensors are computed in float.
at::Tensor wide(const at::Tensor& t) { return t.scalar_type() == at::kHalf || t.scalar_type() == at::kBFloat16 ? t.to(at::kFloat) : t; }

void blend(const at::Tensor& out, const at::Tensor& result, double alpha, double beta) {
    at::Tensor value = alpha == 1 ? result : result * alpha;
    if (beta != 0) value = value + wide(out) * beta;
    TORCH_CHECK(value.sizes() == out.sizes(), "shapes differ");
    out.copy_(value);
}

template <class Body>
int status_of(const Body& body) { return dice_cpu::runs(body) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM; }

std::vector<int64_t> list(const int* values, int n) { return {values, values + n}; }

at::Tensor filter(const cudnnConvolutionStruct* d, const cudnnFilterStruct* wd, const void* w) {
    at::Tensor weight = wide(view(wd, w));
    if (d->mode == CUDNN_CROSS_CORRELATION) return weight;
    std::vector<int64_t> spatial;
    for (int i = 2; i < wd->n; ++i) spatial.push_back(i);
    return weight.flip(spatial);
}

at::Tensor convolve(const cudnnConvolutionStruct* d, const at::Tensor& x, const at::Tensor& w) {
    return at::convolution(x, w, {}, list(d->stride, d->n), list(d->pad, d->n), list(d->dilation, d->n), false, std::vector<int64_t>(d->n, 0), d->groups);
}

// Calls f(first, count) for runs of samples whose results stay small, so that a large output needs no second copy.
void in_slices(const cudnnTensorStruct* out, const std::function<void(int64_t, int64_t)>& f) {
    int64_t sample = 1;
    for (int i = 1; i < out->n; ++i) sample *= out->size[i];
    const int64_t step = std::max<int64_t>(1, (int64_t{1} << 25) / std::max<int64_t>(1, sample));
    for (int64_t first = 0; first < out->size[0]; first += step) f(first, std::min(step, out->size[0] - first));
}

at::Tensor activate(const cudnnActivationStruct* d, const at::Tensor& x) {
    switch (d->mode) {
        case CUDNN_ACTIVATION_SIGMOID: return at::sigmoid(x);
        case CUDNN_ACTIVATION_RELU: return at::relu(x);
        case CUDNN_ACTIVATION_TANH: return at::tanh(x);
        case CUDNN_ACTIVATION_CLIPPED_RELU: return at::clamp(x, 0, d->coefficient);
        case CUDNN_ACTIVATION_ELU: return at::elu(x, d->coefficient);
        case CUDNN_ACTIVATION_SWISH: return x * at::sigmoid(x * (d->coefficient == 0 ? 1 : d->coefficient));
        default: return x;
    }
}

}  // namespace

extern "C" {

cudnnHandle_t dice_cpu_dnn_default() {
    static cudnnContext one;
    return &one;
}

int dice_cpu_convolution_shape(const cudnnConvolutionStruct* d, const cudnnTensorStruct* x, const cudnnFilterStruct* w, int n, int* shape) {
    if (n < x->n || d->n != x->n - 2 || w->n != x->n || x->size[1] != w->size[1] * d->groups) return CUDNN_STATUS_BAD_PARAM;
    shape[0] = x->size[0];
    shape[1] = w->size[0];
    for (int i = 0; i < d->n; ++i)
        shape[i + 2] = 1 + (x->size[i + 2] + 2 * d->pad[i] - (d->dilation[i] * (w->size[i + 2] - 1) + 1)) / d->stride[i];
    return CUDNN_STATUS_SUCCESS;
}

int dice_cpu_convolution(const cudnnConvolutionStruct* d, const void* alpha, const cudnnTensorStruct* xd, const void* x, const cudnnFilterStruct* wd, const void* w, const void* beta, const cudnnTensorStruct* yd, void* y) {
    return status_of([&] {
        const at::Tensor in = view(xd, x), out = view(yd, y), weight = filter(d, wd, w);
        in_slices(yd, [&](int64_t first, int64_t count) {
            blend(out.narrow(0, first, count), convolve(d, wide(in.narrow(0, first, count)), weight), factor(alpha, xd->type), factor(beta, xd->type));
        });
    });
}

int dice_cpu_convolution_bias(const cudnnConvolutionStruct* d, const void* alpha1, const cudnnTensorStruct* xd, const void* x, const cudnnFilterStruct* wd, const void* w, const void* alpha2, const cudnnTensorStruct* zd,
                              const void* z, const cudnnTensorStruct* bd, const void* bias, const cudnnActivationStruct* activation, const cudnnTensorStruct* yd, void* y) {
    return status_of([&] {
        const at::Tensor in = view(xd, x), out = view(yd, y), weight = filter(d, wd, w), shift = wide(view(bd, bias));
        const double times = factor(alpha1, xd->type), keep = factor(alpha2, xd->type);
        in_slices(yd, [&](int64_t first, int64_t count) {
            at::Tensor result = convolve(d, wide(in.narrow(0, first, count)), weight);
            if (times != 1) result = result * times;
            result.add_(shift);
            if (keep != 0) result = result + wide(view(zd, z).narrow(0, first, count)) * keep;
            blend(out.narrow(0, first, count), activate(activation, result), 1, 0);
        });
    });
}

int dice_cpu_convolution_data(const cudnnConvolutionStruct* d, const void* alpha, const cudnnFilterStruct* wd, const void* w, const cudnnTensorStruct* dyd, const void* dy, const void* beta, const cudnnTensorStruct* dxd, void* dx) {
    return status_of([&] {
        const at::Tensor out = view(dxd, dx), gradient = wide(view(dyd, dy));
        std::vector<int64_t> extra(d->n);
        for (int i = 0; i < d->n; ++i)
            extra[i] = dxd->size[i + 2] - ((dyd->size[i + 2] - 1) * d->stride[i] - 2 * d->pad[i] + d->dilation[i] * (wd->size[i + 2] - 1) + 1);
        const at::Tensor result =
            at::convolution(gradient, filter(d, wd, w), {}, list(d->stride, d->n), list(d->pad, d->n), list(d->dilation, d->n), true, extra, d->groups);
        blend(out, result, factor(alpha, dyd->type), factor(beta, dyd->type));
    });
}

int dice_cpu_convolution_filter(const cudnnConvolutionStruct* d, const void* alpha, const cudnnTensorStruct* xd, const void* x, const cudnnTensorStruct* dyd, const void* dy, const void* beta, const cudnnFilterStruct* dwd, void* dw) {
    return status_of([&] {
        const at::Tensor out = view(dwd, dw);
        const auto gradients = at::convolution_backward(wide(view(dyd, dy)), wide(view(xd, x)), wide(out), c10::nullopt, list(d->stride, d->n), list(d->pad, d->n), list(d->dilation, d->n), false,
                                                        std::vector<int64_t>(d->n, 0), d->groups, {false, true, false});
        at::Tensor result = std::get<1>(gradients);
        if (d->mode != CUDNN_CROSS_CORRELATION) {
            std::vector<int64_t> spatial;
            for (int i = 2; i < dwd->n; ++i) spatial.push_back(i);
            result = result.flip(spatial);
        }
        blend(out, result, factor(alpha, xd->type), factor(beta, xd->type));
    });
}

int dice_cpu_activation(const cudnnActivationStruct* d, const void* alpha, const cudnnTensorStruct* xd, const void* x, const void* beta, const cudnnTensorStruct* yd, void* y) {
    return status_of([&] { blend(view(yd, y), activate(d, wide(view(xd, x))), factor(alpha, xd->type), factor(beta, xd->type)); });
}

int dice_cpu_softmax(int log, int channel, const void* alpha, const cudnnTensorStruct* xd, const void* x, const void* beta, const cudnnTensorStruct* yd, void* y) {
    return status_of([&] {
        const at::Tensor in = wide(view(xd, x));
        const at::Tensor rows = channel != 0 ? in : in.reshape({in.size(0), -1});
        const at::Tensor result = (log != 0 ? at::log_softmax(rows, 1) : at::softmax(rows, 1)).reshape(in.sizes());
        blend(view(yd, y), result, factor(alpha, xd->type), factor(beta, xd->type));
    });
}

int dice_cpu_pooling(const cudnnPoolingStruct* d, const void* alpha, const cudnnTensorStruct* xd, const void* x, const void* beta, const cudnnTensorStruct* yd, void* y) {
    return status_of([&] {
        const at::Tensor in = wide(view(xd, x));
        const auto window = list(d->window, d->n), stride = list(d->stride, d->n), pad = list(d->pad, d->n);
        const bool largest = d->mode == CUDNN_POOLING_MAX || d->mode == CUDNN_POOLING_MAX_DETERMINISTIC;
        const bool include = d->mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
        TORCH_CHECK(d->n == 2 || d->n == 3);
        at::Tensor result;
        if (largest) result = d->n == 2 ? at::max_pool2d(in, window, stride, pad) : at::max_pool3d(in, window, stride, pad);
        else result = d->n == 2 ? at::avg_pool2d(in, window, stride, pad, false, include) : at::avg_pool3d(in, window, stride, pad, false, include);
        blend(view(yd, y), result, factor(alpha, xd->type), factor(beta, xd->type));
    });
}

int dice_cpu_batch_norm(int per_activation, const void* alpha, const void* beta, const cudnnTensorStruct* xd, const void* x, const cudnnTensorStruct* yd, void* y, const cudnnTensorStruct* pd, const void* scale, const void* bias,
                        void* mean, void* variance, double momentum, double epsilon, void* saved_mean, void* saved_inverse, int training) {
    return status_of([&] {
        const at::Tensor in = wide(view(xd, x));
        at::Tensor center, spread;
        if (training == 0) {
            center = view(pd, mean);
            spread = view(pd, variance);
        } else {
            std::vector<int64_t> over{0};
            for (int64_t i = 2; per_activation == 0 && i < in.dim(); ++i) over.push_back(i);
            center = in.mean(over, true);
            spread = in.var(over, false, true);
            const double count = static_cast<double>(in.numel()) / static_cast<double>(center.numel());
            const double unbiased = count > 1 ? count / (count - 1) : 1;
            if (mean != nullptr) blend(view(pd, mean), center, momentum, 1 - momentum);
            if (variance != nullptr) blend(view(pd, variance), spread, momentum * unbiased, 1 - momentum);
            if (saved_mean != nullptr) blend(view(pd, saved_mean), center, 1, 0);
            if (saved_inverse != nullptr) blend(view(pd, saved_inverse), at::rsqrt(spread + epsilon), 1, 0);
        }
        blend(view(yd, y), (in - center) * at::rsqrt(spread + epsilon) * view(pd, scale) + view(pd, bias), factor(alpha, xd->type), factor(beta, xd->type));
    });
}

int dice_cpu_tensor_operation(int operation, const void* alpha1, const cudnnTensorStruct* ad, const void* a, const void* alpha2, const cudnnTensorStruct* bd, const void* b, const void* beta, const cudnnTensorStruct* cd, void* c) {
    return status_of([&] {
        const at::Tensor out = view(cd, c), first = wide(view(ad, a)) * factor(alpha1, ad->type);
        const auto second = [&] { return wide(view(bd, b)) * factor(alpha2, bd->type); };
        at::Tensor result;
        switch (operation) {
            case CUDNN_OP_TENSOR_ADD: result = factor(alpha2, bd->type) == 0 ? first : first + second(); break;
            case CUDNN_OP_TENSOR_MUL: result = first * second(); break;
            case CUDNN_OP_TENSOR_MIN: result = at::minimum(first, second()); break;
            case CUDNN_OP_TENSOR_MAX: result = at::maximum(first, second()); break;
            case CUDNN_OP_TENSOR_SQRT: result = at::sqrt(first); break;
            default: result = 1 - first; break;
        }
        blend(out, result.expand_as(out), 1, factor(beta, cd->type));
    });
}

int dice_cpu_reduce(int operation, const void* alpha, const cudnnTensorStruct* ad, const void* a, const void* beta, const cudnnTensorStruct* cd, void* c) {
    return status_of([&] {
        const at::Tensor in = wide(view(ad, a)), out = view(cd, c);
        std::vector<int64_t> over;
        for (int i = 0; i < ad->n; ++i)
            if (cd->size[i] == 1 && ad->size[i] != 1) over.push_back(i);
        at::Tensor result = in;
        switch (operation) {
            case CUDNN_REDUCE_TENSOR_ADD: result = over.empty() ? in : in.sum(over, true); break;
            case CUDNN_REDUCE_TENSOR_AVG: result = over.empty() ? in : in.mean(over, true); break;
            case CUDNN_REDUCE_TENSOR_MIN: result = over.empty() ? in : in.amin(over, true); break;
            case CUDNN_REDUCE_TENSOR_MAX: result = over.empty() ? in : in.amax(over, true); break;
            case CUDNN_REDUCE_TENSOR_AMAX: result = over.empty() ? in.abs() : in.abs().amax(over, true); break;
            case CUDNN_REDUCE_TENSOR_NORM1: result = over.empty() ? in.abs() : in.abs().sum(over, true); break;
            case CUDNN_REDUCE_TENSOR_NORM2: result = over.empty() ? in.abs() : (in * in).sum(over, true).sqrt(); break;
            default:
                for (const int64_t i : over) result = result.prod(i, true);
        }
        blend(out, result, factor(alpha, ad->type), factor(beta, ad->type));
    });
}

int dice_cpu_fill(const cudnnTensorStruct* yd, void* y, const void* value, int scale) {
    return status_of([&] {
        const at::Tensor out = view(yd, y);
        if (scale != 0) out.mul_(factor(value, yd->type));
        else out.fill_(at::from_blob(const_cast<void*>(value), {}, out.options()));  // a value of the tensor's own type
    });
}
}
