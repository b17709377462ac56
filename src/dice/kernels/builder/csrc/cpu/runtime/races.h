// Data races, found by what threads really did: two threads touch the same bytes, one of them writes, and nothing orders
// them - no barrier of the block, no operation of the warp, no end of a launch, no atomic operation in between.
//
// Used with objects whose every access calls a hook (hooks.cpp), on one core. Times are per thread and cheap: a count of
// block barriers, and inside a warp a vector clock. Writes that change nothing are no races.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "block.h"

namespace dice_cpu {

class Races {
public:
    static Races& instance();

    bool watching = false;
    void begin_launch(const Grid& grid, const char* stacks, size_t stacks_bytes, const char* shared, size_t shared_bytes);
    void begin_block(const Thread& first);
    void barrier() { ++epoch_; }
    void warp_met(unsigned warp, uint32_t lanes);
    void access(const Thread& thread, const void* address, unsigned bytes, bool write);
    void atomic(const Thread& thread);
    void settle();
    void clear();
    const char* text() const { return text_.c_str(); }

private:
    // The last write to, and the last read from, the bytes of an aligned word of 8.
    struct Event {
        uint64_t sequence = 0;
        uint32_t block = 0, thread = 0, epoch = 0, clock = 0;
        uint8_t bytes = 0;
        bool changed = false;
    };
    struct Word {
        uint64_t launch = 0;
        Event write, read;
    };
    struct Pending {  // a write that the thread is about to make
        unsigned char* address = nullptr;
        unsigned bytes = 0;
        unsigned char before[16];
        Word* words[3];
        bool conflict = false, with_write = false;
        Event other;
        Thread thread;
    };

    bool ordered(const Event& earlier, const Thread& now, bool shared) const;
    void find_shared();
    bool is_shared(const void* address) const;
    void report(const Thread& now, const Event& other, bool now_writes, bool other_wrote, const void* address);
    Event event(const Thread& thread, uint8_t bytes) const;

    std::unordered_map<uintptr_t, Word> words_;
    std::vector<std::pair<const char*, const char*>> shared_ranges_;
    std::pair<const char*, const char*> dynamic_shared_;
    unsigned blocks_begun_ = 0;
    const char *stacks_ = nullptr, *stacks_end_ = nullptr;
    std::vector<uint64_t> block_atomics_;   // sequence number of each block's last atomic operation
    std::vector<uint64_t> thread_atomics_;  // of each thread of the current block
    std::vector<uint32_t> clocks_;          // per thread
    std::vector<std::vector<uint32_t>> known_;  // [thread][lane]: clock of that lane that the thread has seen
    uint64_t launch_ = 0, sequence_ = 1;
    uint32_t block_ = 0, epoch_ = 0;
    dim3 block_dim_;
    dim3 grid_dim_;
    std::string kernel_, text_;
    unsigned reported_ = 0;
    Pending pending_;
};

}  // namespace dice_cpu
