// What the loader steers the runtime by (dice.kernels.cpu.runtime has the same layout). Nothing of it has a name that an
// object could be linked to.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dice_cpu {

void keep_arguments(size_t piece_bytes, size_t all_bytes);
const void* kept_piece(size_t i, size_t* moment, size_t* size);
void guard_memory(int on);
const char* memory_fault();

struct Control {
    void (*set_ledger)(void* page);
    void (*enable)(int on);
    void (*set_order)(int order, uint64_t seed, const char* kernel);
    const char* (*fault_text)();
    void (*reset_errors)();
    void (*keep_arguments)(size_t piece_bytes, size_t all_bytes);
    const void* (*kept_piece)(size_t i, size_t* moment, size_t* size);
    void (*guard_memory)(int on);
    const char* (*memory_fault)();
};

}  // namespace dice_cpu
