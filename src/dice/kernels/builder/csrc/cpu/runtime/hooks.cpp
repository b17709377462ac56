// What GCC calls before every access to memory in units compiled with -fsanitize=thread: not ThreadSanitizer's own
// library, but ours. Before a volatile access the lanes of a warp take turns, so that warp-synchronous code (every lane
// reads, then every lane writes) does what lanes in step would do. Other accesses pass.
#include "block.h"

using dice_cpu::Worker;

#define HOOK extern "C" __attribute__((visibility("default")))

namespace {

void take_turns() {
    if (Worker* worker = Worker::current(); worker != nullptr) worker->yield();
}

}  // namespace

HOOK void __tsan_init() {}
HOOK void __tsan_func_entry(void*) {}
HOOK void __tsan_func_exit() {}
HOOK void __tsan_vptr_update(void**, void*) {}
HOOK void __tsan_vptr_read(void**) {}
HOOK void __tsan_read_range(void*, unsigned long) {}
HOOK void __tsan_write_range(void*, unsigned long) {}

#define ACCESSES(bytes)                                                       \
    HOOK void __tsan_read##bytes(void*) {}                                    \
    HOOK void __tsan_write##bytes(void*) {}                                   \
    HOOK void __tsan_unaligned_read##bytes(void*) {}                          \
    HOOK void __tsan_unaligned_write##bytes(void*) {}                         \
    HOOK void __tsan_volatile_read##bytes(void*) { take_turns(); }            \
    HOOK void __tsan_volatile_write##bytes(void*) { take_turns(); }           \
    HOOK void __tsan_unaligned_volatile_read##bytes(void*) { take_turns(); }  \
    HOOK void __tsan_unaligned_volatile_write##bytes(void*) { take_turns(); }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

#define ATOMICS(bits, type)                                                                                                           \
    HOOK type __tsan_atomic##bits##_load(const volatile type* p, int) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }                \
    HOOK void __tsan_atomic##bits##_store(volatile type* p, type v, int) { __atomic_store_n(p, v, __ATOMIC_SEQ_CST); }                \
    HOOK type __tsan_atomic##bits##_exchange(volatile type* p, type v, int) { return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); }   \
    HOOK type __tsan_atomic##bits##_fetch_add(volatile type* p, type v, int) { return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST); }   \
    HOOK type __tsan_atomic##bits##_fetch_sub(volatile type* p, type v, int) { return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST); }   \
    HOOK type __tsan_atomic##bits##_fetch_and(volatile type* p, type v, int) { return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST); }   \
    HOOK type __tsan_atomic##bits##_fetch_or(volatile type* p, type v, int) { return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST); }     \
    HOOK type __tsan_atomic##bits##_fetch_xor(volatile type* p, type v, int) { return __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST); }   \
    HOOK type __tsan_atomic##bits##_fetch_nand(volatile type* p, type v, int) { return __atomic_fetch_nand(p, v, __ATOMIC_SEQ_CST); } \
    HOOK int __tsan_atomic##bits##_compare_exchange_strong(volatile type* p, type* c, type v, int, int) {                             \
        return __atomic_compare_exchange_n(p, c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                                       \
    }                                                                                                                                 \
    HOOK int __tsan_atomic##bits##_compare_exchange_weak(volatile type* p, type* c, type v, int, int) {                               \
        return __atomic_compare_exchange_n(p, c, v, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                                        \
    }                                                                                                                                 \
    HOOK type __tsan_atomic##bits##_compare_exchange_val(volatile type* p, type c, type v, int, int) {                                \
        __atomic_compare_exchange_n(p, &c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                                             \
        return c;                                                                                                                     \
    }
ATOMICS(8, unsigned char)
ATOMICS(16, unsigned short)
ATOMICS(32, unsigned int)
ATOMICS(64, unsigned long)
HOOK void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
HOOK void __tsan_atomic_signal_fence(int) {}
