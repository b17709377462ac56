// Registers a device image with the CUDA runtime as nvcc's own generated code does, and marks kernel launches in the
// grader's ledger (ledger.h).
//
// Linked into every extension with `-Wl,--wrap=...` for the functions below, so launches are marked however they are
// written: our stubs for `<<<>>>`, the stubs of nvcc's own host code, cudaLaunchKernel, cooperative launches.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>

#include <cuda_runtime_api.h>

#include "arguments.h"
#include "ledger.h"

extern "C" {

// Written by the builder as assembly (device_image.py); absent when nvcc's own registration code is linked.
struct dice_kernel_symbol {
  const void* host;
  const char* device_name;
};
struct dice_variable_symbol {
  void* host;
  const char* device_name;
  std::size_t bytes;
  std::size_t constant;
};
extern const char dice_image_wrapper[] __attribute__((weak, visibility("hidden")));
extern const dice_kernel_symbol dice_image_kernels[] __attribute__((weak, visibility("hidden")));
extern const dice_variable_symbol dice_image_variables[] __attribute__((weak, visibility("hidden")));

// One kernel, as the reader sees it (candidate/extension_loader.py has the same layout).
struct dice_launch_entry {
  const char* name;  // mangled
  const void* host;
  const void* handle;
};

// What the loader steers an object by.
struct dice_launch_control {
  const dice_launch_entry* entries;
  const std::atomic<int>* count;
  std::atomic<int>* enabled;
  dice_ledger::Page** page;
  void (*keep_arguments)(std::size_t piece_bytes, std::size_t all_bytes);
  int (*kept_piece)(std::size_t i, dice_arguments::KeptPiece* piece);
  void (*after_launches)(void (*look)());
};
}

namespace {

constexpr int kCapacity = 4096;
dice_launch_entry entries[kCapacity];
std::atomic<int> entry_count{0};
std::atomic<int> enabled{1};
dice_ledger::Page* page = nullptr;
std::mutex entries_mutex;

dice_launch_entry* find(const void* host_or_handle) {
  const int n = entry_count.load(std::memory_order_acquire);
  for (int i = 0; i < n; ++i) {
    if (entries[i].host == host_or_handle || entries[i].handle == host_or_handle) {
      return &entries[i];
    }
  }
  return nullptr;
}

template <class Launch>
cudaError_t counted(const void* kernel, const dice_arguments::Sizes& sizes, void** arguments, cudaStream_t stream,
                    Launch launch) {
  const dice_launch_entry* entry = find(kernel);
  const void* host = entry == nullptr ? kernel : entry->host;
  dice_arguments::keep(host, sizes, arguments, stream, false);
  if (enabled.load(std::memory_order_relaxed) == 0) {
    return cudaSuccess;
  }
  const cudaError_t error = launch();
  if (entry != nullptr) {
    dice_ledger::mark(page, entry->name, error != cudaSuccess);
  }
  dice_arguments::keep(host, sizes, arguments, stream, true);
  dice_arguments::kept_all();
  return error;
}

}  // namespace

extern "C" {

#define VISIBLE __attribute__((visibility("default")))
#define HIDDEN __attribute__((visibility("hidden")))

// Whoever asks first gets it: the loader, once the object is loaded. If code of the candidate was faster, no launch of this
// object is ever marked.
VISIBLE const dice_launch_control* dice_launch_open() {
  static const dice_launch_control control = {entries, &entry_count, &enabled, &page,
                                              dice_arguments::keep_arguments, dice_arguments::kept_piece,
                                              dice_arguments::after_launches};
  static std::atomic<bool> given{false};
  return given.exchange(true) ? nullptr : &control;
}

unsigned __cudaPopCallConfiguration(dim3*, dim3*, std::size_t*, void*);
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFatBinaryEnd(void**);
void __cudaUnregisterFatBinary(void**);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*);
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int);

// Body of a kernel stub: what nvcc's stub does.
HIDDEN void dice_launch(const void* host, void** arguments) {
  dim3 grid, block;
  std::size_t shared = 0;
  void* stream = nullptr;
  if (__cudaPopCallConfiguration(&grid, &block, &shared, &stream) != cudaSuccess) {
    return;
  }
  cudaLaunchKernel(host, grid, block, arguments, shared, static_cast<cudaStream_t>(stream));
}

__attribute__((weak)) void __real___cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*);
HIDDEN void __wrap___cudaRegisterFunction(void** image, const char* host, char* device, const char* name, int limit,
                                          void* tid, void* bid, void* block, void* grid, int* warp) {
  {
    std::lock_guard<std::mutex> lock(entries_mutex);
    const int n = entry_count.load();
    if (n < kCapacity) {
      entries[n].name = name;
      entries[n].host = host;
      entry_count.store(n + 1, std::memory_order_release);
    }
  }
  __real___cudaRegisterFunction(image, host, device, name, limit, tid, bid, block, grid, warp);
}

__attribute__((weak)) cudaError_t __real_cudaLaunchKernel(const void*, dim3, dim3, void**, std::size_t, cudaStream_t);
HIDDEN cudaError_t __wrap_cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                           std::size_t shared, cudaStream_t stream) {
  return counted(kernel, {grid, block, shared}, arguments, stream,
                 [&] { return __real_cudaLaunchKernel(kernel, grid, block, arguments, shared, stream); });
}

__attribute__((weak)) cudaError_t __real_cudaLaunchCooperativeKernel(const void*, dim3, dim3, void**, std::size_t, cudaStream_t);
HIDDEN cudaError_t __wrap_cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                                      std::size_t shared, cudaStream_t stream) {
  return counted(kernel, {grid, block, shared}, arguments, stream, [&] {
    return __real_cudaLaunchCooperativeKernel(kernel, grid, block, arguments, shared, stream); });
}

__attribute__((weak)) cudaError_t __real_cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void*, void**);
HIDDEN cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** arguments) {
  return counted(kernel, {config->gridDim, config->blockDim, config->dynamicSmemBytes}, arguments, config->stream,
                 [&] { return __real_cudaLaunchKernelExC(config, kernel, arguments); });
}

// nvcc's host code asks for a handle once, in recent CUDA versions, and launches by it.
__attribute__((weak)) cudaError_t __real___cudaGetKernel(void**, const void*);
HIDDEN cudaError_t __wrap___cudaGetKernel(void** handle, const void* host) {
  const cudaError_t error = __real___cudaGetKernel(handle, host);
  if (error == cudaSuccess) {
    if (dice_launch_entry* entry = find(host)) {
      entry->handle = *handle;
    }
  }
  return error;
}

__attribute__((weak)) cudaError_t __real___cudaLaunchKernel(void*, dim3, dim3, void**, std::size_t, cudaStream_t);
HIDDEN cudaError_t __wrap___cudaLaunchKernel(void* handle, dim3 grid, dim3 block, void** arguments, std::size_t shared,
                                             cudaStream_t stream) {
  return counted(handle, {grid, block, shared}, arguments, stream,
                 [&] { return __real___cudaLaunchKernel(handle, grid, block, arguments, shared, stream); });
}

static void** image_handle;

static void unregister_image() { __cudaUnregisterFatBinary(image_handle); }

static __attribute__((constructor)) void register_image() {
  if (dice_image_wrapper == nullptr) {
    return;
  }
  image_handle = __cudaRegisterFatBinary(const_cast<char*>(dice_image_wrapper));
  for (const dice_kernel_symbol* kernel = dice_image_kernels; kernel->host != nullptr; ++kernel) {
    char* name = const_cast<char*>(kernel->device_name);
    __cudaRegisterFunction(image_handle, static_cast<const char*>(kernel->host), name, name, -1, nullptr, nullptr,
                           nullptr, nullptr, nullptr);
  }
  for (const dice_variable_symbol* variable = dice_image_variables; variable->host != nullptr; ++variable) {
    char* name = const_cast<char*>(variable->device_name);
    __cudaRegisterVar(image_handle, static_cast<char*>(variable->host), name, name, 0, variable->bytes,
                      static_cast<int>(variable->constant), 0);
  }
  __cudaRegisterFatBinaryEnd(image_handle);
  std::atexit(unregister_image);
}
}
