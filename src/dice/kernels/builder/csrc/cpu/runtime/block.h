// One block of a grid, run by one worker (an operating-system thread).
//
// Kernels whose threads wait for each other get a fibre per thread. A fibre runs until it waits; then the next ready
// lane of its warp runs, and when none is, or all give way again and again, the scheduler goes on to the next warp. A
// warp operation is complete when all lanes of its mask that have not exited have come to it; a block barrier when all
// threads that have not exited have. Exited threads count as present, as on the hardware (compute capability 7.0 and
// later).
#pragma once

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../include/dice_cpu/abi.h"
#include "fibre.h"

namespace dice_cpu {

// An error of device code: what the CUDA runtime would report, and where it happened.
struct DeviceFault : std::runtime_error {
    DeviceFault(int error_, const std::string& text) : std::runtime_error(text), error(error_) {}
    int error;
};

// kPoisoned: ascending, and shared memory is NaN (all bits one) whenever a block begins. kFenced: ascending, and shared memory
// is 3.4e38 (bytes 0x7F), which no maximum or comparison leaves out; so is what lies behind the dynamic part, and it must stay.
enum class Order { kAscending, kDescending, kRandom, kPoisoned, kFenced };

struct Grid {
    const Kernel* kernel;
    RunThread run;
    void* closure;
    dim3 grid_dim, block_dim;
    size_t shared_bytes;
    bool cooperative;
    Order order;
    uint64_t seed;
    uint64_t blocks() const { return uint64_t{grid_dim.x} * grid_dim.y * grid_dim.z; }
    unsigned threads() const { return block_dim.x * block_dim.y * block_dim.z; }
    struct GridBarrier* barrier;
};

struct Fibre {
    void* sp;
    Thread thread;
};

// The lanes of a warp, by bit: not exited, ready to run, waiting for their warp, waiting for their block. The arrays hold
// what a waiting lane has asked for, and what it gets.
struct Warp {
    uint32_t alive, ready, waiting, at_barrier;
    bool uniform;  // all waiting lanes ask for the same operation under the same mask
    int operation[32], argument[32], width[32];
    uint32_t mask[32];
    uint64_t value[32], result[32];
    const void* site[32];
    WarpFunction function[32];
};

class Worker {
public:
    Worker();
    ~Worker();
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    // The worker that runs on this operating-system thread inside a kernel, or null.
    static Worker* current();

    void begin(const Grid& grid);
    void run_block(uint64_t index);  // throws DeviceFault
    void end();                      // of this worker's share of the grid

    Thread* thread() { return running_ != nullptr ? &running_->thread : &loop_thread_; }
    int block_operation(int operation, int predicate);
    uint64_t warp_operation(int operation, uint32_t mask, uint64_t value, int argument, int width, WarpFunction function, const void* site);
    void yield();
    void grid_sync();
    std::string place() const;

private:
    friend void fibre_main();

    void run_fibres();
    void poison_shared();
    void look_behind_shared() const;
    void allocate_stacks(unsigned threads);
    void wait(Warp& warp, bool spins = false);
    void resume(Warp& warp, unsigned warp_index);
    int pick(uint32_t ready, int after);
    bool complete_waiting(Warp& warp);
    bool release_barrier();
    void finish_fibre();
    [[noreturn]] void deadlock();
    uint64_t random();

    const Grid* grid_ = nullptr;
    Thread loop_thread_{};
    Fibre* running_ = nullptr;
    void* scheduler_sp_ = nullptr;
    std::vector<Fibre> fibres_;
    std::vector<Warp> warps_;
    int barrier_operation_ = 0, barrier_result_ = 0, barrier_true_ = 0;
    unsigned at_barrier_ = 0, alive_ = 0, at_grid_barrier_ = 0;
    unsigned rounds_ = 0;     // of lanes of a warp that gave way
    bool gives_way_ = false;  // the warp that runs, to the next one
    uint64_t random_state_ = 1;
    char* stacks_ = nullptr;
    size_t stacks_bytes_ = 0, stack_stride_ = 0;
    unsigned stacks_made_ = 0;
    std::unique_ptr<char[]> shared_memory_;
    char* shared_ = nullptr;
    unsigned blocks_poisoned_ = 0;
    char* statics_ = nullptr;            // thread-local variables of the kernel's object: static __shared__ ones are such
    std::vector<char> statics_before_;   // what they held before they were poisoned
    std::exception_ptr fault_;
};

// All blocks of a cooperative launch meet here; each is on a thread of its own.
struct GridBarrier {
    explicit GridBarrier(unsigned blocks);
    ~GridBarrier();
    void wait(bool leaving = false);
    struct State;
    std::unique_ptr<State> state;
};

}  // namespace dice_cpu
