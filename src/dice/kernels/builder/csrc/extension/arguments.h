// What kernels are given on a GPU, and what they leave: copies of the memory that their arguments lead to, before each
// launch and after it, and of the arguments themselves.
//
// `dice.kernels.candidate.answer_traces` looks for the answer in it. An argument may be a pointer, a number, or a struct
// that holds pointers; each aligned word that is an address of memory that a GPU reads is followed, and from the beginning
// of what lies there (tables of pointers) once more. What lies behind an address ends with its allocation: for PyTorch's
// memory that is a segment of its allocator, so the neighbours of a tensor are copied with it.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <vector>

#include <cuda_runtime_api.h>

namespace dice_arguments {

constexpr std::size_t kMostPieces = 512, kTable = 1 << 12, kMostParameters = 4096;

struct Piece {
  std::uint64_t moment;  // nanoseconds of a clock that all objects share; the lowest bit: after a launch
  std::uint64_t path;    // which argument, and where in it, and in the memory behind it, the address stands
  const void* address;   // null: the argument itself
  std::vector<char> bytes;
};

// The same for the loader (dice.kernels.cpu.runtime has the same layout). `whole`: it ends where its allocation ends.
struct KeptPiece {
  std::uint64_t moment, path;
  void *address, *bytes;
  std::uint64_t size;
  int whole;
};

// Sizes of a launch, which can carry numbers like any argument.
struct Sizes {
  dim3 grid, block;
  std::size_t shared;
};

struct Kept {
  std::atomic<bool> keeping{false};
  std::mutex mutex;
  std::deque<Piece> pieces;
  std::size_t piece_bytes = 0, bytes_left = 0;
  std::atomic<void (*)()> look{nullptr};
};

inline Kept& kept() {
  static auto* one = new Kept;  // never freed: a launch may come while the process ends
  return *one;
}

#if CUDART_VERSION >= 12050  // from which on the runtime says how large a parameter is, and finds the driver's functions

// Bytes from `address` to the end of its allocation; 0 where it is none that a GPU reads.
inline std::size_t extent(const char* address) {
  using Range = int (*)(std::uintptr_t* base, std::size_t* size, std::uintptr_t address);
  static const auto range = [] {
    void* found = nullptr;
    const auto error = cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", &found, 12000, cudaEnableDefault, nullptr);
    return error == cudaSuccess ? reinterpret_cast<Range>(found) : nullptr;
  }();
  cudaPointerAttributes attributes;
  if (range == nullptr || cudaPointerGetAttributes(&attributes, address) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  const auto number = reinterpret_cast<std::uintptr_t>(attributes.devicePointer);
  std::uintptr_t base = 0;
  std::size_t size = 0;
  if (attributes.type == cudaMemoryTypeUnregistered || range(&base, &size, number) != 0) {
    return 0;
  }
  return base + size - number;
}

constexpr int kArgumentBits = 40, kOffsetBits = 20;  // of a path: argument, offset in it, one more than that behind it

inline void keep_piece(std::uint64_t moment, std::uint64_t path, const char* address, bool follow);

inline void follow_words(std::uint64_t moment, std::uint64_t path, const char* bytes, std::size_t size, bool follow) {
  for (std::size_t at = 0; at + sizeof(void*) <= size; at += sizeof(void*)) {
    const char* address;
    std::memcpy(&address, bytes + at, sizeof address);
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    if (number > 4096 && number < (std::uintptr_t{1} << 48)) {
      keep_piece(moment, follow ? path | at << kOffsetBits : path | (at + 1), address, follow);
    }
  }
}

inline void keep_piece(std::uint64_t moment, std::uint64_t path, const char* address, bool follow) {
  Kept& own = kept();
  const std::size_t size = std::min(extent(address), own.piece_bytes);
  if (size == 0 || size > own.bytes_left || own.pieces.size() >= kMostPieces) {
    return;
  }
  std::vector<char> bytes(size);
  if (cudaMemcpy(bytes.data(), address, size, cudaMemcpyDefault) != cudaSuccess) {
    cudaGetLastError();
    return;
  }
  for (const Piece& piece : own.pieces) {
    if (piece.address == address && piece.bytes == bytes) {
      return;
    }
  }
  own.bytes_left -= size;
  own.pieces.push_back({moment, path, address, std::move(bytes)});
  if (follow) {
    const std::vector<char>& whole = own.pieces.back().bytes;
    const std::vector<char> table(whole.begin(), whole.begin() + std::min(size, kTable));
    follow_words(moment, path, table.data(), table.size(), false);
  }
}

// Copies the sizes of a launch of `kernel` (its host stub), and what its arguments lead to. Nothing while a graph is
// captured, or when an earlier call failed, which the one who made it is to see.
inline void keep(const void* kernel, const Sizes& sizes, void** arguments, cudaStream_t stream, bool after) {
  Kept& own = kept();
  if (!own.keeping.load(std::memory_order_relaxed)) {
    return;
  }
  std::lock_guard<std::mutex> lock(own.mutex);
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusActive;
  if (kernel == nullptr || arguments == nullptr || cudaPeekAtLastError() != cudaSuccess) {
    return;
  }
  if (cudaStreamIsCapturing(stream, &capture) != cudaSuccess || capture != cudaStreamCaptureStatusNone) {
    return;
  }
  if (cudaDeviceSynchronize() != cudaSuccess) {
    return;
  }
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const auto time = static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  const std::uint64_t moment = (time & ~std::uint64_t{1}) | (after ? 1 : 0);
  if (own.pieces.size() < kMostPieces && !after) {
    const char* bytes = reinterpret_cast<const char*>(&sizes);
    own.pieces.push_back({moment, 0, nullptr, std::vector<char>(bytes, bytes + sizeof sizes)});
  }
  std::size_t offset = 0, size = 0;
  for (std::size_t i = 0; i < kMostParameters && cudaFuncGetParamInfo(kernel, i, &offset, &size) == cudaSuccess; ++i) {
    const char* bytes = static_cast<const char*>(arguments[i]);
    if (own.pieces.size() < kMostPieces && !after) {
      own.pieces.push_back({moment, (i + 1) << kArgumentBits, nullptr, std::vector<char>(bytes, bytes + size)});
    }
    follow_words(moment, (i + 1) << kArgumentBits, bytes, size, true);
  }
  cudaGetLastError();  // the index behind the last parameter
}

#else

inline void keep(const void*, const Sizes&, void**, cudaStream_t, bool) {}

#endif

// From here on arguments of launches are kept; with 0 bytes, no longer, and what there is goes.
inline void keep_arguments(std::size_t piece_bytes, std::size_t all_bytes) {
  Kept& own = kept();
  std::lock_guard<std::mutex> lock(own.mutex);
  own.pieces.clear();
  own.piece_bytes = piece_bytes;
  own.bytes_left = all_bytes;
  own.keeping = all_bytes != 0;
}

// Piece `i`; 0 behind the last.
inline int kept_piece(std::size_t i, KeptPiece* piece) {
  Kept& own = kept();
  std::lock_guard<std::mutex> lock(own.mutex);
  if (i >= own.pieces.size()) {
    return 0;
  }
  Piece& one = own.pieces[i];
  *piece = {one.moment, one.path, const_cast<void*>(one.address), one.bytes.data(), one.bytes.size(), 1};
  return 1;
}

// From here on `look` is called after each launch, when what it left is kept; null: no longer.
inline void after_launches(void (*look)()) { kept().look = look; }

inline void kept_all() {
  if (auto* look = kept().look.load()) {
    look();
  }
}

}  // namespace dice_arguments
