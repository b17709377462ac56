// What the loader steers the runtime by (dice.kernels.cpu.runtime has the same layout). Nothing of it has a name that an
// object could be linked to.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dice_cpu {

// A copy of an argument of a launch, or of memory that it leads to.
struct KeptPiece {
    uint64_t moment, path;
    void *address, *bytes;
    uint64_t size;
    int whole;
};

void keep_arguments(size_t piece_bytes, size_t all_bytes);
int kept_piece(size_t i, KeptPiece* piece);
void after_launches(void (*look)());
void guard_memory(int on);
const char* memory_fault();
constexpr size_t kStepClasses = 256;
void steps_taken(uint64_t* steps);

struct Control {
    void (*set_ledger)(void* page);
    void (*enable)(int on);
    void (*set_order)(int order, uint64_t seed, const char* kernel);
    const char* (*fault_text)();
    void (*reset_errors)();
    void (*keep_arguments)(size_t piece_bytes, size_t all_bytes);
    int (*kept_piece)(size_t i, KeptPiece* piece);
    void (*after_launches)(void (*look)());
    void (*guard_memory)(int on);
    const char* (*memory_fault)();
    void (*steps_taken)(uint64_t* steps);
};

}  // namespace dice_cpu
