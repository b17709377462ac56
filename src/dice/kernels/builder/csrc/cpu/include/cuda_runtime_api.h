// The CUDA runtime API for a device that is this computer: memory is host memory, streams run in order and at once.
// Names and numbers are CUDA's; what has no meaning here is absent, and the builder reports it as unsupported_on_cpu.
#pragma once

#include <string.h>

#include "dice_cpu/abi.h"
#include "dice_cpu/device.h"
#include "library_types.h"

#pragma GCC visibility push(hidden)

#define CUDART_VERSION 13000
#define CUDA_VERSION 13000

#define DICE_CPU_CUDA_ERRORS(X)                                                                    \
    X(cudaSuccess, 0, "no error")                                                                  \
    X(cudaErrorInvalidValue, 1, "invalid argument")                                                \
    X(cudaErrorMemoryAllocation, 2, "out of memory")                                               \
    X(cudaErrorInitializationError, 3, "initialization error")                                     \
    X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                          \
    X(cudaErrorInvalidPitchValue, 12, "invalid pitch argument")                                    \
    X(cudaErrorInvalidSymbol, 13, "invalid device symbol")                                         \
    X(cudaErrorInvalidDevicePointer, 17, "invalid device pointer")                                 \
    X(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                    \
    X(cudaErrorInsufficientDriver, 35, "CUDA driver version is insufficient for CUDA runtime version") \
    X(cudaErrorMissingConfiguration, 52, "__global__ function call is not configured")             \
    X(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                               \
    X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                                \
    X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                       \
    X(cudaErrorNoKernelImageForDevice, 209, "no kernel image is available for execution on the device") \
    X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                              \
    X(cudaErrorSymbolNotFound, 500, "named symbol not found")                                      \
    X(cudaErrorNotReady, 600, "device not ready")                                                  \
    X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")                    \
    X(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch")               \
    X(cudaErrorLaunchTimeout, 702, "the launch timed out and was terminated")                      \
    X(cudaErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled")                    \
    X(cudaErrorAssert, 710, "device-side assert triggered")                                        \
    X(cudaErrorMisalignedAddress, 716, "misaligned address")                                       \
    X(cudaErrorLaunchFailure, 719, "unspecified launch failure")                                   \
    X(cudaErrorCooperativeLaunchTooLarge, 720, "too many blocks in cooperative launch")            \
    X(cudaErrorNotSupported, 801, "operation not supported")                                       \
    X(cudaErrorUnknown, 999, "unknown error")

enum cudaError {
#define DICE_CPU_ENUMERATOR(name, number, text) name = number,
    DICE_CPU_CUDA_ERRORS(DICE_CPU_ENUMERATOR)
#undef DICE_CPU_ENUMERATOR
};
typedef enum cudaError cudaError_t;

enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
typedef struct CUmemPoolHandle_st* cudaMemPool_t;
typedef const void* cudaFunction_t;
#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaStreamPerThread ((cudaStream_t)0x2)
enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2, cudaEventInterprocess = 4 };
enum { cudaEventRecordDefault = 0, cudaEventWaitDefault = 0 };
enum { cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2, cudaHostAllocWriteCombined = 4 };
enum { cudaHostRegisterDefault = 0, cudaHostRegisterPortable = 1, cudaHostRegisterMapped = 2 };
enum { cudaMemAttachGlobal = 1, cudaMemAttachHost = 2, cudaMemAttachSingle = 4 };
enum { cudaDeviceScheduleAuto = 0, cudaDeviceScheduleSpin = 1, cudaDeviceScheduleYield = 2, cudaDeviceScheduleBlockingSync = 4, cudaDeviceMapHost = 8 };
enum { cudaOccupancyDefault = 0, cudaOccupancyDisableCachingOverride = 1 };
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual };
enum cudaSharedMemConfig { cudaSharedMemBankSizeDefault, cudaSharedMemBankSizeFourByte, cudaSharedMemBankSizeEightByte };
enum cudaSharedCarveout { cudaSharedmemCarveoutDefault = -1, cudaSharedmemCarveoutMaxL1 = 0, cudaSharedmemCarveoutMaxShared = 100 };
enum cudaLimit { cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize, cudaLimitDevRuntimeSyncDepth, cudaLimitDevRuntimePendingLaunchCount, cudaLimitMaxL2FetchGranularity, cudaLimitPersistingL2CacheSize };
enum cudaMemoryAdvise { cudaMemAdviseSetReadMostly = 1, cudaMemAdviseUnsetReadMostly, cudaMemAdviseSetPreferredLocation, cudaMemAdviseUnsetPreferredLocation, cudaMemAdviseSetAccessedBy, cudaMemAdviseUnsetAccessedBy };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributePreferredSharedMemoryCarveout = 9 };
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged };
enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1, cudaDevAttrMaxBlockDimX = 2, cudaDevAttrMaxBlockDimY = 3, cudaDevAttrMaxBlockDimZ = 4,
    cudaDevAttrMaxGridDimX = 5, cudaDevAttrMaxGridDimY = 6, cudaDevAttrMaxGridDimZ = 7, cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrTotalConstantMemory = 9, cudaDevAttrWarpSize = 10, cudaDevAttrMaxRegistersPerBlock = 12, cudaDevAttrClockRate = 13,
    cudaDevAttrMultiProcessorCount = 16, cudaDevAttrMemoryClockRate = 36, cudaDevAttrGlobalMemoryBusWidth = 37, cudaDevAttrL2CacheSize = 38,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39, cudaDevAttrUnifiedAddressing = 41, cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76, cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81, cudaDevAttrMaxRegistersPerMultiprocessor = 82,
    cudaDevAttrManagedMemory = 83, cudaDevAttrConcurrentManagedAccess = 89, cudaDevAttrCooperativeLaunch = 95,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97, cudaDevAttrMaxBlocksPerMultiprocessor = 106, cudaDevAttrReservedSharedMemoryPerBlock = 111,
    cudaDevAttrMemoryPoolsSupported = 115
};

// Sizes as in CUDA 13: a template over one of them is the same program here.
struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize;
    size_t memPitch;
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
    int clockRate;
    size_t totalConstMem;
    int major, minor;
    size_t textureAlignment;
    int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory, computeMode;
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, asyncEngineCount, unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize;
    int persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, managedMemory, concurrentManagedAccess, cooperativeLaunch;
    size_t sharedMemPerMultiprocessor, sharedMemPerBlockOptin, reservedSharedMemPerBlock;
    int regsPerMultiprocessor, maxBlocksPerMultiProcessor, memoryPoolsSupported, reserved[137];
};
struct cudaFuncAttributes {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes, preferredShmemCarveout, reserved[23];
};
struct cudaPointerAttributes {
    cudaMemoryType type;
    int device;
    void *devicePointer, *hostPointer;
    long reserved[8];
};
static_assert(sizeof(cudaDeviceProp) == 1008 && sizeof(cudaFuncAttributes) == 144 && sizeof(cudaPointerAttributes) == 88, "");
struct cudaExtent { size_t width, height, depth; };
struct cudaPitchedPtr { void* ptr; size_t pitch, xsize, ysize; };
union cudaLaunchAttributeValue { int cooperative, priority; char pad[64]; };
enum cudaLaunchAttributeID { cudaLaunchAttributeIgnore = 0, cudaLaunchAttributeCooperative = 2, cudaLaunchAttributePriority = 8 };
struct cudaLaunchAttribute { cudaLaunchAttributeID id; cudaLaunchAttributeValue val; };
struct cudaLaunchConfig_t { dim3 gridDim, blockDim; size_t dynamicSmemBytes; cudaStream_t stream; cudaLaunchAttribute* attrs; unsigned numAttrs; };
typedef struct cudaLaunchConfig_t cudaLaunchConfig_t;

// In the runtime library: one error state, one table of allocations and kernel attributes for all objects.
DICE_CPU_API int dice_cpu_last_error(int clear);
DICE_CPU_API int dice_cpu_set_error(int error);
DICE_CPU_API const char* dice_cpu_error_name(int error);
DICE_CPU_API const char* dice_cpu_error_text(int error);
DICE_CPU_API int dice_cpu_malloc(void** pointer, size_t bytes);
DICE_CPU_API int dice_cpu_free(void* pointer);
DICE_CPU_API int dice_cpu_properties(cudaDeviceProp* properties);
DICE_CPU_API int dice_cpu_attribute(int attribute);
DICE_CPU_API int dice_cpu_set_shared_limit(const void* stub, int bytes);
DICE_CPU_API int dice_cpu_launch_kernel(const void* stub, dim3 grid, dim3 block, void** arguments, size_t shared, int cooperative);
DICE_CPU_API void* dice_cpu_event_create();
DICE_CPU_API void dice_cpu_event_record(void* event);
DICE_CPU_API double dice_cpu_event_ms(void* start, void* end);
DICE_CPU_API void dice_cpu_event_destroy(void* event);
DICE_CPU_API int dice_cpu_memory_info(size_t* available, size_t* total);

namespace dice_cpu {
DICE_CPU_INLINE cudaError_t status(int error) { return static_cast<cudaError_t>(dice_cpu_set_error(error)); }
DICE_CPU_INLINE cudaError_t sticky() { return static_cast<cudaError_t>(dice_cpu_last_error(0) >= 700 ? dice_cpu_last_error(0) : 0); }
}  // namespace dice_cpu

DICE_CPU_INLINE cudaError_t cudaGetLastError() { return static_cast<cudaError_t>(dice_cpu_last_error(1)); }
DICE_CPU_INLINE cudaError_t cudaPeekAtLastError() { return static_cast<cudaError_t>(dice_cpu_last_error(0)); }
DICE_CPU_INLINE const char* cudaGetErrorString(cudaError_t error) { return dice_cpu_error_text(error); }
DICE_CPU_INLINE const char* cudaGetErrorName(cudaError_t error) { return dice_cpu_error_name(error); }

// Devices.
DICE_CPU_INLINE cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaSetDevice(int device) { return dice_cpu::status(device <= 0 ? cudaSuccess : cudaErrorInvalidDevice); }
DICE_CPU_INLINE cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) { return static_cast<cudaError_t>(dice_cpu_properties(properties)); }
DICE_CPU_INLINE cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) { return *value = dice_cpu_attribute(attribute), cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaDeviceSynchronize() { return dice_cpu::sticky(); }
DICE_CPU_INLINE cudaError_t cudaDeviceReset() { return cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit) { return *value = 1 << 16, cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) { return *least = 0, *greatest = 0, cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { return *can = 0, cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaProfilerStart() { return cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaProfilerStop() { return cudaSuccess; }

// Memory.
namespace dice_cpu {
template <class T>
DICE_CPU_INLINE cudaError_t allocate(T** pointer, size_t bytes) {
    void* block = nullptr;
    const cudaError_t result = status(dice_cpu_malloc(&block, bytes));
    *pointer = static_cast<T*>(block);
    return result;
}
}  // namespace dice_cpu
template <class T> DICE_CPU_INLINE cudaError_t cudaMalloc(T** pointer, size_t bytes) { return dice_cpu::allocate(pointer, bytes); }
template <class T> DICE_CPU_INLINE cudaError_t cudaMallocAsync(T** pointer, size_t bytes, cudaStream_t) { return dice_cpu::allocate(pointer, bytes); }
template <class T> DICE_CPU_INLINE cudaError_t cudaMallocManaged(T** pointer, size_t bytes, unsigned = cudaMemAttachGlobal) { return dice_cpu::allocate(pointer, bytes); }
template <class T> DICE_CPU_INLINE cudaError_t cudaMallocHost(T** pointer, size_t bytes, unsigned = 0) { return dice_cpu::allocate(pointer, bytes); }
template <class T> DICE_CPU_INLINE cudaError_t cudaHostAlloc(T** pointer, size_t bytes, unsigned = 0) { return dice_cpu::allocate(pointer, bytes); }
template <class T> DICE_CPU_INLINE cudaError_t cudaMallocPitch(T** pointer, size_t* pitch, size_t width, size_t height) {
    *pitch = (width + 511) / 512 * 512;
    return dice_cpu::allocate(pointer, *pitch * height);
}
DICE_CPU_INLINE cudaError_t cudaFree(void* pointer) { return dice_cpu::status(dice_cpu_free(pointer)); }
DICE_CPU_INLINE cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) { return dice_cpu::status(dice_cpu_free(pointer)); }
DICE_CPU_INLINE cudaError_t cudaFreeHost(void* pointer) { return dice_cpu::status(dice_cpu_free(pointer)); }
DICE_CPU_INLINE cudaError_t cudaHostRegister(void*, size_t, unsigned) { return cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }
template <class T> DICE_CPU_INLINE cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned) { return *device = static_cast<T*>(host), cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaMemGetInfo(size_t* available, size_t* total) { return static_cast<cudaError_t>(dice_cpu_memory_info(available, total)); }
DICE_CPU_INLINE cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
    if (bytes != 0 && (to == nullptr || from == nullptr)) return dice_cpu::status(cudaErrorInvalidValue);
    return memmove(to, from, bytes), dice_cpu::sticky();
}
DICE_CPU_INLINE cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t = nullptr) { return cudaMemcpy(to, from, bytes, kind); }
DICE_CPU_INLINE cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) { return cudaMemcpy(to, from, bytes, cudaMemcpyDefault); }
DICE_CPU_INLINE cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind) {
    if (width > to_pitch || width > from_pitch) return dice_cpu::status(cudaErrorInvalidPitchValue);
    for (size_t row = 0; row < height; ++row) memmove(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
    return cudaSuccess;
}
DICE_CPU_INLINE cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t = nullptr) {
    return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}
DICE_CPU_INLINE cudaError_t cudaMemset(void* to, int value, size_t bytes) {
    if (bytes != 0 && to == nullptr) return dice_cpu::status(cudaErrorInvalidValue);
    return memset(to, value, bytes), dice_cpu::sticky();
}
DICE_CPU_INLINE cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t = nullptr) { return cudaMemset(to, value, bytes); }
DICE_CPU_INLINE cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
    for (size_t row = 0; row < height; ++row) memset(static_cast<char*>(to) + row * pitch, value, width);
    return cudaSuccess;
}
DICE_CPU_INLINE cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, cudaStream_t = nullptr) { return cudaMemset2D(to, pitch, value, width, height); }
DICE_CPU_INLINE cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, int) { return cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t = nullptr) { return cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
    void* plain = const_cast<void*>(pointer);
    *attributes = {cudaMemoryTypeDevice, 0, plain, plain};
    return cudaSuccess;
}

// Symbols: `__device__` and `__constant__` variables are plain variables.
template <class T> DICE_CPU_INLINE cudaError_t cudaGetSymbolAddress(void** pointer, const T& symbol) {
    return *pointer = const_cast<void*>(static_cast<const volatile void*>(&symbol)), cudaSuccess;
}
template <class T> DICE_CPU_INLINE cudaError_t cudaGetSymbolSize(size_t* bytes, const T&) { return *bytes = sizeof(T), cudaSuccess; }
template <class T> DICE_CPU_INLINE cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, size_t bytes, size_t offset = 0, cudaMemcpyKind = cudaMemcpyHostToDevice) {
    if (offset + bytes > sizeof(T)) return dice_cpu::status(cudaErrorInvalidValue);
    return memcpy(reinterpret_cast<char*>(const_cast<void*>(static_cast<const volatile void*>(&symbol))) + offset, from, bytes), cudaSuccess;
}
template <class T> DICE_CPU_INLINE cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, size_t bytes, size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyHostToDevice, cudaStream_t = nullptr) {
    return cudaMemcpyToSymbol(symbol, from, bytes, offset, kind);
}
template <class T> DICE_CPU_INLINE cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t bytes, size_t offset = 0, cudaMemcpyKind = cudaMemcpyDeviceToHost) {
    if (offset + bytes > sizeof(T)) return dice_cpu::status(cudaErrorInvalidValue);
    return memcpy(to, reinterpret_cast<const char*>(const_cast<const void*>(static_cast<const volatile void*>(&symbol))) + offset, bytes), cudaSuccess;
}
template <class T> DICE_CPU_INLINE cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, size_t bytes, size_t offset = 0, cudaMemcpyKind kind = cudaMemcpyDeviceToHost, cudaStream_t = nullptr) {
    return cudaMemcpyFromSymbol(to, symbol, bytes, offset, kind);
}

// Streams and events.
DICE_CPU_INLINE cudaError_t cudaStreamCreate(cudaStream_t* stream) { return *stream = static_cast<cudaStream_t>(dice_cpu_event_create()), cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cudaStreamCreate(stream); }
DICE_CPU_INLINE cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) { return cudaStreamCreate(stream); }
DICE_CPU_INLINE cudaError_t cudaStreamDestroy(cudaStream_t stream) { return dice_cpu_event_destroy(stream), cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaStreamSynchronize(cudaStream_t) { return dice_cpu::sticky(); }
DICE_CPU_INLINE cudaError_t cudaStreamQuery(cudaStream_t) { return dice_cpu::sticky(); }
DICE_CPU_INLINE cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) { return cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaEventCreate(cudaEvent_t* event) { return *event = static_cast<cudaEvent_t>(dice_cpu_event_create()), cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
DICE_CPU_INLINE cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
DICE_CPU_INLINE cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t = nullptr) { return dice_cpu_event_record(event), cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaEventSynchronize(cudaEvent_t) { return dice_cpu::sticky(); }
DICE_CPU_INLINE cudaError_t cudaEventQuery(cudaEvent_t) { return dice_cpu::sticky(); }
DICE_CPU_INLINE cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) { return *ms = static_cast<float>(dice_cpu_event_ms(start, end)), cudaSuccess; }
DICE_CPU_INLINE cudaError_t cudaEventDestroy(cudaEvent_t event) { return dice_cpu_event_destroy(event), cudaSuccess; }

// Kernels by address.
DICE_CPU_INLINE cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared = 0, cudaStream_t = nullptr) {
    return static_cast<cudaError_t>(dice_cpu_launch_kernel(kernel, grid, block, arguments, shared, 0));
}
template <class... P> DICE_CPU_INLINE cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments, size_t shared = 0, cudaStream_t stream = nullptr) {
    return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, arguments, shared, stream);
}
DICE_CPU_INLINE cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared = 0, cudaStream_t = nullptr) {
    return static_cast<cudaError_t>(dice_cpu_launch_kernel(kernel, grid, block, arguments, shared, 1));
}
template <class... P> DICE_CPU_INLINE cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments, size_t shared = 0, cudaStream_t stream = nullptr) {
    return cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel), grid, block, arguments, shared, stream);
}
template <class... P, class... A> DICE_CPU_INLINE cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...), A&&... arguments) {
    dice_cpu_configure(config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream);
    kernel(static_cast<P>(arguments)...);
    return cudaPeekAtLastError();
}
template <class F> DICE_CPU_INLINE cudaError_t cudaFuncSetAttribute(F* kernel, cudaFuncAttribute attribute, int value) {
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    return dice_cpu::status(dice_cpu_set_shared_limit(reinterpret_cast<const void*>(kernel), value));
}
template <class F> DICE_CPU_INLINE cudaError_t cudaFuncSetCacheConfig(F*, cudaFuncCache) { return cudaSuccess; }
template <class F> DICE_CPU_INLINE cudaError_t cudaFuncSetSharedMemConfig(F*, cudaSharedMemConfig) { return cudaSuccess; }
template <class F> DICE_CPU_INLINE cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, F*) {
    *attributes = {0, 0, 0, 1024, 32, 90, 90, 0, 49152, -1};
    return cudaSuccess;
}
namespace dice_cpu {
DICE_CPU_INLINE int resident_blocks(int block, size_t shared) {
    if (block <= 0 || block > 1024) return 0;
    const int by_threads = 2048 / ((block + 31) / 32 * 32);
    const int by_shared = shared == 0 ? 32 : static_cast<int>(233472 / (shared + 1024));
    return by_threads < by_shared ? (by_threads < 32 ? by_threads : 32) : (by_shared < 32 ? by_shared : 32);
}
}  // namespace dice_cpu
template <class F> DICE_CPU_INLINE cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F, int block, size_t shared) {
    return *blocks = dice_cpu::resident_blocks(block, shared), cudaSuccess;
}
template <class F> DICE_CPU_INLINE cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, F, int block, size_t shared, unsigned) {
    return *blocks = dice_cpu::resident_blocks(block, shared), cudaSuccess;
}
template <class F> DICE_CPU_INLINE cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, F, size_t = 0, int limit = 0) {
    *block = limit > 0 && limit < 1024 ? limit : 1024;
    *grid = 2 * dice_cpu_attribute(cudaDevAttrMultiProcessorCount);
    return cudaSuccess;
}
template <class G, class F> DICE_CPU_INLINE cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* grid, int* block, F kernel, G, int limit = 0) {
    return cudaOccupancyMaxPotentialBlockSize(grid, block, kernel, 0, limit);
}
template <class F> DICE_CPU_INLINE cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, F, int, int) { return *bytes = 49152, cudaSuccess; }

#pragma GCC visibility pop
