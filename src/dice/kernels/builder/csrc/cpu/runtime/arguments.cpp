// What kernels are given, and what they leave: copies of the memory that their arguments point to, before each launch and
// after it.
//
// `dice.kernels.candidate.answer_traces` looks for the answer in it. An argument may be a pointer, a number, or a struct
// that holds pointers; each aligned word that is the address of readable memory is followed, and from small pieces (tables
// of pointers) once more. What lies behind an address ends with its allocation, where glibc's header before it says so.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <vector>

#include "../include/dice_cpu/abi.h"
#include "control.h"

namespace {

constexpr size_t kPage = 4096, kSmall = 1 << 14, kMostPieces = 4096, kMostParameter = 1 << 15;

struct Piece {
    size_t moment;        // 2 i before launch i, 2 i + 1 after it
    uint64_t path;        // which argument, and where in it, and in the memory behind it, the address stands
    const void* address;  // null: the argument itself
    bool whole;           // it ends where its allocation ends
    std::vector<char> bytes;
};

struct Kept {
    std::mutex mutex;
    std::deque<Piece> pieces;
    size_t piece_bytes = 0, bytes_left = 0, moment = 0;
    uint64_t argument = 0;  // number of arguments in this moment
    void (*look)() = nullptr;
    int probe[2] = {-1, -1};
};

Kept& kept() {
    static auto* one = new Kept;
    return *one;
}

// Readable bytes from `address` on, at most `most`: the kernel refuses to copy from a page that cannot be read.
size_t readable(const char* address, size_t most) {
    Kept& own = kept();
    if (own.probe[0] < 0 && pipe2(own.probe, O_CLOEXEC | O_NONBLOCK) != 0) return 0;
    size_t done = 0;
    while (done < most) {
        char byte;
        if (write(own.probe[1], address + done, 1) != 1) break;
        if (read(own.probe[0], &byte, 1) != 1) break;
        done = std::min(most, done + kPage - (reinterpret_cast<uintptr_t>(address) + done) % kPage);
    }
    return done;
}

// Size of the heap block that begins at `address`, by glibc's header; 0 where there is none.
size_t block_size(const char* address, size_t most) {
    if (reinterpret_cast<uintptr_t>(address) % 16 != 0 || readable(address - 8, 8) != 8) return 0;
    size_t word;
    std::memcpy(&word, address - 8, sizeof word);
    const size_t size = word & ~size_t{7};
    if (size < 32 || size % 16 != 0 || size > (size_t{1} << 40)) return 0;
    if ((word & 2) != 0) return size - 16;  // a mapping of its own
    const char* next = address + size - 8;  // whose lowest bit says that this block is in use
    if (size - 8 > most) return readable(next, 8) == 8 ? size - 8 : 0;
    if (readable(next, 8) != 8) return 0;
    std::memcpy(&word, next, sizeof word);
    return (word & 1) != 0 ? size - 8 : 0;
}

constexpr int kArgumentBits = 40, kOffsetBits = 20;  // of a path: argument, offset in it, one more than that behind it

void keep_piece(const char* address, uint64_t path, bool follow);

void follow_words(const char* bytes, size_t size, uint64_t path, bool follow) {
    for (size_t at = 0; at + sizeof(void*) <= size; at += sizeof(void*)) {
        const char* address;
        std::memcpy(&address, bytes + at, sizeof address);
        const auto number = reinterpret_cast<uintptr_t>(address);
        if (number > kPage && number < (uintptr_t{1} << 47)) keep_piece(address, follow ? path | at << kOffsetBits : path | (at + 1), follow);
    }
}

void keep_piece(const char* address, uint64_t path, bool follow) {
    Kept& own = kept();
    size_t size = block_size(address, own.piece_bytes);
    const bool whole = size != 0 && size <= own.piece_bytes;
    size = readable(address, std::min(size == 0 ? own.piece_bytes : size, own.piece_bytes));
    if (size == 0 || size > own.bytes_left || own.pieces.size() >= kMostPieces) return;
    for (const Piece& piece : own.pieces) {
        if (piece.address == address && piece.bytes.size() == size && std::memcmp(piece.bytes.data(), address, size) == 0) return;
    }
    own.bytes_left -= size;
    own.pieces.push_back({own.moment, path, address, whole, std::vector<char>(address, address + size)});
    if (follow && size <= kSmall) {
        const std::vector<char> copy = own.pieces.back().bytes;
        follow_words(copy.data(), copy.size(), path, false);
    }
}

}  // namespace

namespace dice_cpu {

static std::atomic<bool> keeping{false};

// From here on arguments of launches are kept; with 0 bytes, no longer, and what there is goes.
void keep_arguments(size_t piece_bytes, size_t all_bytes) {
    std::lock_guard lock(kept().mutex);
    kept().pieces.clear();
    kept().piece_bytes = piece_bytes;
    kept().bytes_left = all_bytes;
    kept().moment = 0;
    keeping = all_bytes != 0;
}

// Piece `i`; 0 behind the last.
int kept_piece(size_t i, KeptPiece* piece) {
    std::lock_guard lock(kept().mutex);
    if (i >= kept().pieces.size()) return 0;
    Piece& one = kept().pieces[i];
    *piece = {one.moment, one.path, const_cast<void*>(one.address), one.bytes.data(), one.bytes.size(), one.whole};
    return 1;
}

// From here on `look` is called after each launch, when what it left is kept; null: no longer.
void after_launches(void (*look)()) {
    std::lock_guard lock(kept().mutex);
    kept().look = look;
}

}  // namespace dice_cpu

DICE_CPU_API int dice_cpu_keeping() { return dice_cpu::keeping.load(std::memory_order_relaxed) ? 1 : 0; }

// Begins the next moment: before a launch (`after` 0) or after it.
DICE_CPU_API void dice_cpu_keep_moment(int after) {
    std::lock_guard lock(kept().mutex);
    kept().moment = after != 0 ? kept().moment | 1 : (kept().moment | 1) + 1;
    kept().argument = 0;
}

DICE_CPU_API void dice_cpu_keep(const void* argument, size_t size) {
    std::lock_guard lock(kept().mutex);
    const auto* bytes = static_cast<const char*>(argument);
    if (kept().pieces.size() >= kMostPieces || size > kMostParameter) return;
    const uint64_t path = ++kept().argument << kArgumentBits;
    kept().pieces.push_back({kept().moment, path, nullptr, true, std::vector<char>(bytes, bytes + size)});
    follow_words(bytes, size, path, true);
}

// All arguments of the moment are kept.
DICE_CPU_API void dice_cpu_kept(int after) {
    void (*look)() = nullptr;
    {
        std::lock_guard lock(kept().mutex);
        look = kept().look;
    }
    if (after != 0 && look != nullptr) look();
}
