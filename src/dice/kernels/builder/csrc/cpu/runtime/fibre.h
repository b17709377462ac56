// Switching between stacks: the registers that a called function must preserve, and the stack pointer.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" void dice_cpu_switch(void** save, void* load);

namespace dice_cpu {

// A stack pointer that makes dice_cpu_switch enter `entry` on the stack that ends at `top` (aligned to 16).
inline void* fresh_stack(char* top, void (*entry)()) {
    auto* sp = reinterpret_cast<void**>(top);
#if defined(__x86_64__)
    *--sp = nullptr;  // where a return address would be: ends the walk of a debugger or unwinder
    *--sp = reinterpret_cast<void*>(entry);
    for (int i = 0; i < 6; ++i) *--sp = nullptr;
#elif defined(__aarch64__)
    for (int i = 0; i < 20; ++i) *--sp = nullptr;
    sp[11] = reinterpret_cast<void*>(entry);  // x30
#else
#error "fibres are written for x86-64 and aarch64"
#endif
    return sp;
}

}  // namespace dice_cpu
