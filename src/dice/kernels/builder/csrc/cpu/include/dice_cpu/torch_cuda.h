// PyTorch's C++ names for CUDA (c10::cuda, at::cuda), on a computer without it: one device, one stream, host memory.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/util/Exception.h>

#include <optional>
#include <string>
#include <utility>

#include "../cuda_runtime_api.h"

#define C10_CUDA_API
#define C10_CUDA_CHECK(expression)                                                                  \
    do {                                                                                            \
        const cudaError_t dice_error = (expression);                                                \
        if (dice_error != cudaSuccess) {                                                            \
            (void)cudaGetLastError();                                                               \
            TORCH_CHECK(false, "CUDA error: ", cudaGetErrorString(dice_error));                     \
        }                                                                                           \
    } while (0)
#define C10_CUDA_CHECK_WARN(expression) C10_CUDA_CHECK(expression)
#define C10_CUDA_IGNORE_ERROR(expression) (void)(expression)
#define C10_CUDA_CLEAR_ERROR() (void)cudaGetLastError()
#define C10_CUDA_ERROR_HANDLED(expression) (expression)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define AT_CUDA_CHECK(expression) C10_CUDA_CHECK(expression)
#define TORCH_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_KERNEL_LAUNCH_CHECK()

#pragma GCC visibility push(hidden)

namespace c10 {

struct CUDAError : Error {
    using Error::Error;
};

namespace cuda {

class CUDAStream {
public:
    enum Unchecked { UNCHECKED };
    CUDAStream() = default;
    explicit CUDAStream(c10::Stream) {}
    operator cudaStream_t() const { return nullptr; }
    cudaStream_t stream() const { return nullptr; }
    c10::DeviceIndex device_index() const { return 0; }
    c10::Device device() const { return c10::Device(c10::kCPU); }
    c10::Stream unwrap() const { return c10::Stream(c10::Stream::DEFAULT, c10::Device(c10::kCPU)); }
    operator c10::Stream() const { return unwrap(); }
    c10::StreamId id() const { return 0; }
    bool query() const { return true; }
    void synchronize() const { C10_CUDA_CHECK(cudaStreamSynchronize(nullptr)); }
    int priority() const { return 0; }
    bool operator==(const CUDAStream&) const { return true; }
    bool operator!=(const CUDAStream&) const { return false; }
};

inline CUDAStream getCurrentCUDAStream(c10::DeviceIndex = -1) { return {}; }
inline CUDAStream getDefaultCUDAStream(c10::DeviceIndex = -1) { return {}; }
inline CUDAStream getStreamFromPool(bool = false, c10::DeviceIndex = -1) { return {}; }
inline CUDAStream getStreamFromExternal(cudaStream_t, c10::DeviceIndex) { return {}; }
inline void setCurrentCUDAStream(CUDAStream) {}

inline c10::DeviceIndex device_count() noexcept { return 1; }
inline c10::DeviceIndex device_count_ensure_non_zero() { return 1; }
inline c10::DeviceIndex current_device() { return 0; }
inline void set_device(c10::DeviceIndex) {}
inline void device_synchronize() { C10_CUDA_CHECK(cudaDeviceSynchronize()); }
inline void stream_synchronize(cudaStream_t) { device_synchronize(); }
inline int warp_size() { return 32; }

// Guards change nothing, but must be constructible from what candidates give them.
struct CUDAGuard {
    template <class D>
    explicit CUDAGuard(D&&) {}
    CUDAGuard(const CUDAGuard&) = delete;
    template <class D>
    void set_device(D&&) {}
    template <class D>
    void reset_device(D&&) {}
    void set_index(c10::DeviceIndex) {}
    c10::Device original_device() const { return c10::Device(c10::kCPU); }
    c10::Device current_device() const { return c10::Device(c10::kCPU); }
};
struct OptionalCUDAGuard {
    OptionalCUDAGuard() = default;
    template <class D>
    explicit OptionalCUDAGuard(D&&) {}
    template <class D>
    void set_device(D&&) {}
    template <class D>
    void reset_device(D&&) {}
    void set_index(c10::DeviceIndex) {}
    void reset() {}
};
struct CUDAStreamGuard {
    template <class S>
    explicit CUDAStreamGuard(S&&) {}
    template <class S>
    void reset_stream(S&&) {}
    CUDAStream original_stream() const { return {}; }
    CUDAStream current_stream() const { return {}; }
};
struct OptionalCUDAStreamGuard {
    OptionalCUDAStreamGuard() = default;
    template <class S>
    explicit OptionalCUDAStreamGuard(S&&) {}
    template <class S>
    void reset_stream(S&&) {}
};
struct CUDAMultiStreamGuard {
    template <class S>
    explicit CUDAMultiStreamGuard(S&&) {}
};

namespace CUDACachingAllocator {
struct CUDAAllocator {
    c10::DataPtr allocate(size_t bytes) { return c10::GetCPUAllocator()->allocate(bytes); }
    void* raw_alloc(size_t bytes) { return c10::GetCPUAllocator()->raw_allocate(bytes); }
    void* raw_alloc_with_stream(size_t bytes, cudaStream_t) { return raw_alloc(bytes); }
    void raw_delete(void* pointer) { c10::GetCPUAllocator()->raw_deallocate(pointer); }
    void emptyCache() {}
    void recordStream(const c10::DataPtr&, CUDAStream) {}
};
inline CUDAAllocator* get() {
    static CUDAAllocator one;
    return &one;
}
inline void* raw_alloc(size_t bytes) { return get()->raw_alloc(bytes); }
inline void* raw_alloc_with_stream(size_t bytes, cudaStream_t) { return get()->raw_alloc(bytes); }
inline void raw_delete(void* pointer) { get()->raw_delete(pointer); }
inline void emptyCache() {}
inline void recordStream(const c10::DataPtr&, CUDAStream) {}
}  // namespace CUDACachingAllocator

}  // namespace cuda
}  // namespace c10

namespace at::cuda {

using c10::cuda::CUDAGuard;
using c10::cuda::CUDAMultiStreamGuard;
using c10::cuda::CUDAStream;
using c10::cuda::CUDAStreamGuard;
using c10::cuda::current_device;
using c10::cuda::device_count;
using c10::cuda::getCurrentCUDAStream;
using c10::cuda::getDefaultCUDAStream;
using c10::cuda::getStreamFromExternal;
using c10::cuda::getStreamFromPool;
using c10::cuda::OptionalCUDAGuard;
using c10::cuda::OptionalCUDAStreamGuard;
using c10::cuda::set_device;
using c10::cuda::setCurrentCUDAStream;

inline int64_t getNumGPUs() { return 1; }
inline bool is_available() { return true; }
inline int warp_size() { return 32; }
inline cudaDeviceProp* getCurrentDeviceProperties() {
    static cudaDeviceProp properties = [] {
        cudaDeviceProp p;
        cudaGetDeviceProperties(&p, 0);
        return p;
    }();
    return &properties;
}
inline cudaDeviceProp* getDeviceProperties(c10::DeviceIndex) { return getCurrentDeviceProperties(); }
inline c10::Allocator* getCUDADeviceAllocator() { return c10::GetCPUAllocator(); }
inline c10::Allocator* getPinnedMemoryAllocator() { return c10::GetCPUAllocator(); }
inline bool canDeviceAccessPeer(c10::DeviceIndex, c10::DeviceIndex) { return false; }
inline void stream_synchronize(cudaStream_t) { C10_CUDA_CHECK(cudaDeviceSynchronize()); }

template <typename T>
constexpr T ATenCeilDiv(T a, T b) { return (a + b - 1) / b; }

struct CUDAEvent {
    explicit CUDAEvent(unsigned = 0) { cudaEventCreate(&event_); }
    CUDAEvent(const CUDAEvent&) = delete;
    CUDAEvent(CUDAEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
    ~CUDAEvent() {
        if (event_ != nullptr) cudaEventDestroy(event_);
    }
    operator cudaEvent_t() const { return event_; }
    cudaEvent_t event() const { return event_; }
    bool isCreated() const { return event_ != nullptr; }
    bool query() const { return true; }
    void record() { cudaEventRecord(event_); }
    void record(const CUDAStream&) { cudaEventRecord(event_); }
    void recordOnce(const CUDAStream&) { cudaEventRecord(event_); }
    void block(const CUDAStream&) {}
    void synchronize() const { C10_CUDA_CHECK(cudaEventSynchronize(event_)); }
    float elapsed_time(const CUDAEvent& other) const {
        float ms = 0;
        cudaEventElapsedTime(&ms, event_, other.event_);
        return ms;
    }

private:
    cudaEvent_t event_ = nullptr;
};

}  // namespace at::cuda

namespace dice_cpu::torch_cuda {

inline bool is_available() { return true; }
inline bool cudnn_is_available() { return true; }
inline size_t device_count() { return 1; }
inline void synchronize(int64_t = -1) { C10_CUDA_CHECK(cudaDeviceSynchronize()); }
inline void manual_seed(uint64_t) {}
inline void manual_seed_all(uint64_t) {}

}  // namespace dice_cpu::torch_cuda

#pragma GCC visibility pop
