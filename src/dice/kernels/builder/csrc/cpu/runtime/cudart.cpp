// The parts of the CUDA runtime API that keep state: memory, events, device properties, names of errors.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "../include/cuda_runtime_api.h"
#include "guarded.h"

namespace {

struct Allocations {
    std::mutex mutex;
    std::unordered_map<const void*, size_t> sizes;
};
Allocations& allocations() {
    static auto* one = new Allocations;
    return *one;
}

using Clock = std::chrono::steady_clock;

}  // namespace

extern "C" {

int dice_cpu_malloc(void** pointer, size_t bytes) {
    *pointer = nullptr;
    if (bytes == 0) return cudaSuccess;
    void* block = nullptr;
    if (dice_cpu::guards_memory())
        block = dice_cpu::guarded_new(bytes);
    else if (posix_memalign(&block, 256, bytes) != 0)
        block = nullptr;
    if (block == nullptr) return cudaErrorMemoryAllocation;
    std::lock_guard lock(allocations().mutex);
    allocations().sizes[block] = bytes;
    *pointer = block;
    return cudaSuccess;
}

int dice_cpu_free(void* pointer) {
    if (pointer == nullptr) return cudaSuccess;
    {
        std::lock_guard lock(allocations().mutex);
        if (allocations().sizes.erase(pointer) == 0) return cudaErrorInvalidValue;
    }
    if (!dice_cpu::guarded_delete(pointer)) std::free(pointer);
    return cudaSuccess;
}

// An H100's figures where sources compute launch shapes from them; the name says what it is.
int dice_cpu_properties(cudaDeviceProp* p) {
    std::memset(p, 0, sizeof *p);
    std::strcpy(p->name, "CPU execution of CUDA kernels");
    size_t available = 0;
    dice_cpu_memory_info(&available, &p->totalGlobalMem);
    p->sharedMemPerBlock = 49152;
    p->sharedMemPerMultiprocessor = 233472;
    p->sharedMemPerBlockOptin = 232448;
    p->reservedSharedMemPerBlock = 1024;
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->warpSize = 32;
    p->memPitch = 0x7FFFFFFF;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 0x7FFFFFFF;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->clockRate = 1980000;
    p->totalConstMem = 65536;
    p->major = 9;
    p->minor = 0;
    p->textureAlignment = 512;
    p->multiProcessorCount = 132;
    p->concurrentKernels = p->unifiedAddressing = p->managedMemory = p->concurrentManagedAccess = 1;
    p->cooperativeLaunch = p->memoryPoolsSupported = p->canMapHostMemory = 1;
    p->memoryClockRate = 2619000;
    p->memoryBusWidth = 5120;
    p->l2CacheSize = 50 << 20;
    p->maxThreadsPerMultiProcessor = 2048;
    p->maxBlocksPerMultiProcessor = 32;
    return cudaSuccess;
}

int dice_cpu_attribute(int attribute) {
    cudaDeviceProp p;
    dice_cpu_properties(&p);
    switch (attribute) {
        case cudaDevAttrMaxThreadsPerBlock: case cudaDevAttrMaxBlockDimX: case cudaDevAttrMaxBlockDimY: return 1024;
        case cudaDevAttrMaxBlockDimZ: return 64;
        case cudaDevAttrMaxGridDimX: return 0x7FFFFFFF;
        case cudaDevAttrMaxGridDimY: case cudaDevAttrMaxGridDimZ: return 65535;
        case cudaDevAttrMaxSharedMemoryPerBlock: return 49152;
        case cudaDevAttrTotalConstantMemory: return 65536;
        case cudaDevAttrWarpSize: return 32;
        case cudaDevAttrMaxRegistersPerBlock: case cudaDevAttrMaxRegistersPerMultiprocessor: return 65536;
        case cudaDevAttrClockRate: return p.clockRate;
        case cudaDevAttrMultiProcessorCount: return p.multiProcessorCount;
        case cudaDevAttrMemoryClockRate: return p.memoryClockRate;
        case cudaDevAttrGlobalMemoryBusWidth: return p.memoryBusWidth;
        case cudaDevAttrL2CacheSize: return p.l2CacheSize;
        case cudaDevAttrMaxThreadsPerMultiProcessor: return 2048;
        case cudaDevAttrComputeCapabilityMajor: return 9;
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return 233472;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: return 232448;
        case cudaDevAttrMaxBlocksPerMultiprocessor: return 32;
        case cudaDevAttrReservedSharedMemoryPerBlock: return 1024;
        case cudaDevAttrUnifiedAddressing: case cudaDevAttrManagedMemory: case cudaDevAttrConcurrentManagedAccess:
        case cudaDevAttrCooperativeLaunch: case cudaDevAttrMemoryPoolsSupported: return 1;
        default: return 0;
    }
}

int dice_cpu_memory_info(size_t* available, size_t* total) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    *available = page * static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES));
    *total = page * static_cast<size_t>(sysconf(_SC_PHYS_PAGES));
    return cudaSuccess;
}

void* dice_cpu_event_create() { return new Clock::time_point(Clock::now()); }
void dice_cpu_event_record(void* event) {
    if (event != nullptr) *static_cast<Clock::time_point*>(event) = Clock::now();
}
double dice_cpu_event_ms(void* start, void* end) {
    return std::chrono::duration<double, std::milli>(*static_cast<Clock::time_point*>(end) - *static_cast<Clock::time_point*>(start)).count();
}
void dice_cpu_event_destroy(void* event) {
    if (reinterpret_cast<uintptr_t>(event) > 2) delete static_cast<Clock::time_point*>(event);
}

const char* dice_cpu_error_name(int error) {
    switch (error) {
#define DICE_CPU_NAME(name, number, text) \
    case number: return #name;
        DICE_CPU_CUDA_ERRORS(DICE_CPU_NAME)
        default: return "unrecognized error code";
    }
}
const char* dice_cpu_error_text(int error) {
    switch (error) {
#define DICE_CPU_TEXT(name, number, text) \
    case number: return text;
        DICE_CPU_CUDA_ERRORS(DICE_CPU_TEXT)
        default: return "unrecognized error code";
    }
}
}
