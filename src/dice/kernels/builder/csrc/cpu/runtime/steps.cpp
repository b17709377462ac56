// What GCC calls in units compiled with -fsanitize-coverage=trace-pc, at the beginning of every piece of code without a
// branch: one step. Steps are counted by where the piece lies, in some hundred classes.
#include <atomic>

#include "control.h"

namespace {

using dice_cpu::kStepClasses;

// Of one thread. They outlive it: code of a thread that ends may still count, and its steps were taken.
struct Counters {
    std::atomic<uint64_t> steps[kStepClasses]{};
    Counters* next = nullptr;
};

std::atomic<Counters*> all{nullptr};
thread_local Counters* of_this_thread = nullptr;

Counters* begin() {
    auto* made = new Counters;
    made->next = all.load();
    while (!all.compare_exchange_weak(made->next, made)) {
    }
    return of_this_thread = made;
}

size_t class_of(void* place) { return reinterpret_cast<uint64_t>(place) * 0x9e3779b97f4a7c15u >> 56; }
static_assert(kStepClasses == 1 << 8, "class_of gives eight bits");

}  // namespace

extern "C" __attribute__((visibility("default"))) void __sanitizer_cov_trace_pc() {
    Counters* counters = of_this_thread != nullptr ? of_this_thread : begin();
    std::atomic<uint64_t>& steps = counters->steps[class_of(__builtin_return_address(0))];
    // No other thread writes here, so that a plain addition is enough.
    steps.store(steps.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void dice_cpu::steps_taken(uint64_t* steps) {
    for (size_t i = 0; i < kStepClasses; ++i) steps[i] = 0;
    for (const Counters* counters = all.load(); counters != nullptr; counters = counters->next)
        for (size_t i = 0; i < kStepClasses; ++i) steps[i] += counters->steps[i].load();
}
