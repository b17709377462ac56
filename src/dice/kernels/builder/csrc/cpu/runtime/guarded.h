// Memory that ends where nothing may be read or written.
#pragma once

#include <cstddef>

namespace dice_cpu {

bool guards_memory();

// Memory with guards around it; null where there is none left.
void* guarded_new(size_t bytes);

// Frees it; false for memory that has no guards.
bool guarded_delete(void* data);

}  // namespace dice_cpu
