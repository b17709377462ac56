#include "block.h"

#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

namespace dice_cpu {

namespace {

constexpr size_t kMaxShared = 233472;  // 228 KiB
constexpr char kFenceByte = 0x7F;
constexpr size_t kFence = 64;  // bytes behind the dynamic shared memory that belong to nobody
constexpr size_t kStacks = size_t{64} << 20;
constexpr unsigned kRounds = 64;  // in which lanes only give way, until another warp runs: they may wait for it
constexpr uint64_t kCanary = 0x5ca1ab1e0ddba11ull;

__attribute__((tls_model("initial-exec"))) thread_local Worker* current_worker = nullptr;

// The thread-local variables, on this thread, of the object that holds `place`; empty while they do not exist.
struct Statics {
    uintptr_t place;
    char* start = nullptr;
    size_t bytes = 0;

    static int look(dl_phdr_info* info, size_t, void* self) {
        auto& found = *static_cast<Statics*>(self);
        bool here = false;
        size_t bytes = 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto& header = info->dlpi_phdr[i];
            const uintptr_t start = info->dlpi_addr + header.p_vaddr;
            if (header.p_type == PT_LOAD) here = here || (found.place >= start && found.place < start + header.p_memsz);
            if (header.p_type == PT_TLS) bytes = header.p_memsz;
        }
        if (!here) return 0;
        if (info->dlpi_tls_data != nullptr && bytes != 0) found = {found.place, static_cast<char*>(info->dlpi_tls_data), bytes};
        return 1;
    }
};

unsigned lane_bit(const Fibre& fibre) { return 1u << fibre.thread.lane; }

}  // namespace

Worker* Worker::current() { return current_worker; }

Worker::Worker() : shared_memory_(new char[kMaxShared + 1024]) {
    shared_ = shared_memory_.get() + 1024 - reinterpret_cast<uintptr_t>(shared_memory_.get()) % 1024;
}

Worker::~Worker() {
    if (stacks_ != nullptr) munmap(stacks_, stacks_bytes_);
}

void Worker::begin(const Grid& grid) {
    grid_ = &grid;
    random_state_ = grid.seed | 1;
    // Dynamic shared memory holds garbage at first, as on a GPU: here it is NaN.
    std::memset(shared_, 0xFF, grid.shared_bytes);
    loop_thread_ = Thread{{0, 0, 0}, {0, 0, 0}, grid.block_dim, grid.grid_dim, shared_, 0, 0, false,
                          static_cast<unsigned>(grid.shared_bytes)};
    blocks_poisoned_ = 0;
    if (!grid.kernel->fibres) return;
    const unsigned threads = grid.threads();
    allocate_stacks(threads);
    warps_.resize((threads + 31) / 32);
    for (unsigned i = 0; i < threads; ++i) {
        Thread& thread = fibres_[i].thread;
        const unsigned x = i % grid.block_dim.x, rest = i / grid.block_dim.x;
        thread = loop_thread_;
        thread.thread_index = {x, rest % grid.block_dim.y, rest / grid.block_dim.y};
        thread.linear = i;
        thread.lane = i % 32;
        thread.fibre = true;
    }
}

// A thread's copy of the variables is made when it first touches one, so they are looked for until the second block.
void Worker::poison_shared() {
    if (++blocks_poisoned_ <= 2 && statics_ == nullptr) {
        Statics found{reinterpret_cast<uintptr_t>(grid_->kernel)};
        dl_iterate_phdr(Statics::look, &found);
        statics_ = found.start;
        statics_before_.assign(found.start, found.start + found.bytes);
    }
    const bool fenced = grid_->order == Order::kFenced;
    const int filler = fenced ? kFenceByte : 0xFF;
    std::fill_n(statics_, statics_before_.size(), static_cast<char>(filler));
    std::memset(shared_, filler, grid_->shared_bytes + (fenced ? kFence : 0));
}

void Worker::look_behind_shared() const {
    const char* end = shared_ + grid_->shared_bytes;
    if (std::any_of(end, end + kFence, [](char byte) { return byte != kFenceByte; }))
        throw DeviceFault(700, "a write behind the dynamic shared memory of " + std::to_string(grid_->shared_bytes) + " bytes, " + place());
}

// Host code's own thread-local variables were among the poisoned ones.
void Worker::end() {
    std::copy(statics_before_.begin(), statics_before_.end(), statics_);
    statics_before_.clear();
    statics_ = nullptr;
}

void Worker::run_block(uint64_t index) {
    if (grid_->order >= Order::kPoisoned) poison_shared();
    const dim3 grid = grid_->grid_dim;
    loop_thread_.block_index = {static_cast<unsigned>(index % grid.x), static_cast<unsigned>(index / grid.x % grid.y),
                                static_cast<unsigned>(index / grid.x / grid.y)};
    Worker* outer = current_worker;
    current_worker = this;
    try {
        if (grid_->kernel->fibres)
            run_fibres();
        else
            grid_->run(grid_->closure, loop_thread_);
        if (grid_->order == Order::kFenced) look_behind_shared();
    } catch (...) {
        current_worker = outer;
        throw;
    }
    current_worker = outer;
}

// Fibres -----------------------------------------------------------------------------------------------------------

void fibre_main() {
    for (;;) {
        Worker& worker = *current_worker;
        try {
            worker.grid_->run(worker.grid_->closure, worker.running_->thread);
        } catch (...) {
            worker.fault_ = std::current_exception();
        }
        worker.finish_fibre();  // comes back when the fibre is to run a thread of another block
    }
}

void Worker::allocate_stacks(unsigned threads) {
    if (fibres_.size() < threads) fibres_.resize(threads);
    // Fewer threads get larger stacks, within a fixed total that is touched only where it is used. The odd part
    // keeps the stacks' tops out of each other's cache sets.
    const size_t stride = std::clamp<size_t>(kStacks / threads, size_t{64} << 10, size_t{1} << 20) / 4096 * 4096 + 320;
    if (stacks_ != nullptr && stack_stride_ == stride && stacks_made_ >= threads) return;
    const size_t bytes = stride * threads + 4096;
    if (bytes > stacks_bytes_) {
        if (stacks_ != nullptr) munmap(stacks_, stacks_bytes_);
        stacks_bytes_ = 0;
        void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            stacks_ = nullptr;
            throw std::bad_alloc();
        }
        stacks_ = static_cast<char*>(memory);
        stacks_bytes_ = bytes;
    }
    stack_stride_ = stride;
    stacks_made_ = threads;
    for (unsigned i = 0; i < threads; ++i) {
        char* bottom = stacks_ + stride * i;
        std::memcpy(bottom, &kCanary, sizeof kCanary);
        fibres_[i].sp = fresh_stack(bottom + stride / 64 * 64 - 64, fibre_main);
    }
}

void Worker::run_fibres() {
    const unsigned threads = grid_->threads();
    for (unsigned i = 0; i < threads; ++i) fibres_[i].thread.block_index = loop_thread_.block_index;
    const auto warps = static_cast<unsigned>(warps_.size());
    for (unsigned w = 0; w < warps; ++w) {
        const unsigned lanes = std::min(32u, threads - 32 * w);
        const uint32_t all = lanes == 32 ? 0xFFFFFFFFu : (1u << lanes) - 1;
        warps_[w].alive = warps_[w].ready = all;
        warps_[w].waiting = warps_[w].at_barrier = 0;
    }
    alive_ = threads;
    at_barrier_ = at_grid_barrier_ = 0;
    barrier_true_ = 0;
    while (alive_ != 0) {
        bool progress = false;
        const unsigned first = grid_->order == Order::kRandom ? static_cast<unsigned>(random() % warps) : 0;
        for (unsigned i = 0; i < warps; ++i) {
            const unsigned w = grid_->order == Order::kDescending ? warps - 1 - i : (i + first) % warps;
            Warp& warp = warps_[w];
            while (warp.ready != 0 || (warp.waiting != 0 && complete_waiting(warp))) {
                progress = true;
                resume(warp, w);
                if (fault_) {
                    stacks_made_ = 0;  // the other fibres are abandoned where they stand
                    std::rethrow_exception(std::exchange(fault_, nullptr));
                }
                if (std::exchange(gives_way_, false)) break;
            }
        }
        if (!release_barrier() && !progress) deadlock();
    }
    for (unsigned i = 0; i < threads; ++i)
        if (std::memcmp(stacks_ + stack_stride_ * i, &kCanary, sizeof kCanary) != 0) dice_cpu_unsupported("local arrays larger than a thread's stack");
}

// Runs a ready lane of the warp; returns when no lane of it is ready.
void Worker::resume(Warp& warp, unsigned warp_index) {
    running_ = &fibres_[32 * warp_index + static_cast<unsigned>(pick(warp.ready, -1))];
    dice_cpu_switch(&scheduler_sp_, running_->sp);
    running_ = nullptr;
}

// The next ready lane, round robin from `after` (-1: from the start), so that lanes that yield keep in step.
int Worker::pick(uint32_t ready, int after) {
    if (grid_->order == Order::kDescending) {
        const uint32_t below = after < 0 ? ready : ready & ((1u << after) - 1);
        return 31 - __builtin_clz(below != 0 ? below : ready);
    }
    if (grid_->order == Order::kRandom) {
        auto skip = static_cast<int>(random() % static_cast<unsigned>(__builtin_popcount(ready)));
        while (skip-- > 0) ready &= ready - 1;
        return __builtin_ctz(ready);
    }
    const uint32_t above = after < 0 ? ready : ready & ~((2u << after) - 1);
    return __builtin_ctz(above != 0 ? above : ready);
}

// The running fibre gives way: to a ready lane of its warp (perhaps itself), else to the scheduler. One that `spins` may
// wait for another warp: that one runs now and then, when all lanes have had their turn.
void Worker::wait(Warp& warp, bool spins) {
    Fibre* self = running_;
    const auto lane = static_cast<int>(self->thread.lane), next = warp.ready == 0 ? -1 : pick(warp.ready, lane);
    const bool round = grid_->order == Order::kDescending ? next >= lane : next <= lane;
    gives_way_ = spins && round && ++rounds_ % kRounds == 0;
    if (next < 0 || gives_way_) {
        dice_cpu_switch(&self->sp, scheduler_sp_);
        return;
    }
    Fibre* other = &fibres_[self->thread.linear - self->thread.lane + static_cast<unsigned>(next)];
    if (other == self) return;
    running_ = other;
    dice_cpu_switch(&self->sp, other->sp);
}

void Worker::finish_fibre() {
    Warp& warp = warps_[running_->thread.linear / 32];
    warp.alive &= ~lane_bit(*running_);
    warp.ready &= ~lane_bit(*running_);
    --alive_;
    if (fault_) {
        dice_cpu_switch(&running_->sp, scheduler_sp_);
        return;
    }
    wait(warp);
}

void Worker::yield() {
    if (running_ != nullptr) wait(warps_[running_->thread.linear / 32], true);
}

// Block barriers ---------------------------------------------------------------------------------------------------

int Worker::block_operation(int operation, int predicate) {
    if (running_ == nullptr) throw DeviceFault(719, "internal error: a barrier in a kernel that was compiled without one");
    Fibre& fibre = *running_;
    Warp& warp = warps_[fibre.thread.linear / 32];
    warp.ready &= ~lane_bit(fibre);
    warp.at_barrier |= lane_bit(fibre);
    ++at_barrier_;
    barrier_operation_ = operation;
    barrier_true_ += predicate != 0;
    wait(warp);
    return barrier_result_;
}

bool Worker::release_barrier() {
    if (at_barrier_ == 0 || at_barrier_ != alive_) return false;
    if (at_grid_barrier_ != 0) {
        if (at_grid_barrier_ != alive_) return false;
        at_grid_barrier_ = 0;
        grid_->barrier->wait();
    }
    switch (barrier_operation_) {
        case kBarrierCount: barrier_result_ = barrier_true_; break;
        case kBarrierAnd: barrier_result_ = barrier_true_ == static_cast<int>(at_barrier_); break;
        default: barrier_result_ = barrier_true_ != 0; break;
    }
    at_barrier_ = 0;
    barrier_true_ = 0;
    for (Warp& warp : warps_) {
        warp.ready |= warp.at_barrier;
        warp.at_barrier = 0;
    }
    return true;
}

void Worker::grid_sync() {
    if (running_ == nullptr || grid_->barrier == nullptr) dice_cpu_unsupported("a grid-wide barrier without a cooperative launch");
    ++at_grid_barrier_;
    block_operation(kBarrier, 0);
}

// Warp operations --------------------------------------------------------------------------------------------------

namespace {

// Lane from which `lane` reads in a shuffle; itself when the source lies outside its segment.
inline unsigned shuffle_source(int operation, unsigned lane, int argument, int width) {
    const int w = width >= 1 && width <= 32 ? width : 32, self = static_cast<int>(lane);
    const int segment = self & ~(w - 1), place = self & (w - 1);
    int source = self;
    switch (operation) {
        case kShflIndex: source = segment + (argument & (w - 1)); break;
        case kShflUp: source = argument >= 0 && place - argument >= 0 ? self - argument : self; break;
        case kShflDown: source = argument >= 0 && argument < w && place + argument < w ? self + argument : self; break;
        default: source = (self ^ (argument & 31)) < segment + w ? self ^ (argument & 31) : self; break;
    }
    return static_cast<unsigned>(source);
}

template <class F>
inline void for_lanes(uint32_t group, F f) {
    for (uint32_t rest = group; rest != 0; rest &= rest - 1) f(static_cast<unsigned>(__builtin_ctz(rest)));
}

void shuffle(Warp& warp, uint32_t group, int operation) {
    for_lanes(group, [&](unsigned lane) {
        const unsigned source = shuffle_source(operation, lane, warp.argument[lane], warp.width[lane]);
        // A lane that has exited or is not in the mask gives an undefined value: 0 here.
        warp.result[lane] = (group >> source) & 1 ? warp.value[source] : 0;
    });
}

uint64_t reduced(const Warp& warp, uint32_t group, int operation) {
    auto result = static_cast<uint32_t>(warp.value[__builtin_ctz(group)]);
    for_lanes(group & (group - 1), [&](unsigned lane) {
        const auto value = static_cast<uint32_t>(warp.value[lane]);
        switch (operation) {
            case kReduceAdd: result += value; break;
            case kReduceMin: result = static_cast<uint32_t>(std::min(static_cast<int32_t>(result), static_cast<int32_t>(value))); break;
            case kReduceMax: result = static_cast<uint32_t>(std::max(static_cast<int32_t>(result), static_cast<int32_t>(value))); break;
            case kReduceMinUnsigned: result = std::min(result, value); break;
            case kReduceMaxUnsigned: result = std::max(result, value); break;
            case kReduceAnd: result &= value; break;
            case kReduceOr: result |= value; break;
            default: result ^= value; break;
        }
    });
    return result;
}

void match_any(Warp& warp, uint32_t group) {
    for_lanes(group, [&](unsigned lane) {
        uint64_t equal = 0;
        for_lanes(group, [&](unsigned other) { equal |= warp.value[other] == warp.value[lane] ? 1u << other : 0; });
        warp.result[lane] = equal;
    });
}

// All of `group` wait for the same operation: computes their results and makes them ready.
void complete(Warp& warp, uint32_t group) {
    const auto first = static_cast<unsigned>(__builtin_ctz(group));
    const int operation = warp.operation[first];
    const auto give = [&](uint64_t result) { for_lanes(group, [&](unsigned lane) { warp.result[lane] = result; }); };
    uint32_t votes = 0;
    if (operation >= kBallot && operation <= kUniform)
        for_lanes(group, [&](unsigned lane) { votes |= warp.value[lane] != 0 ? 1u << lane : 0; });
    switch (operation) {
        case kSync: break;
        case kShflIndex: case kShflUp: case kShflDown: case kShflXor: shuffle(warp, group, operation); break;
        case kBallot: give(votes); break;
        case kAll: give(votes == group); break;
        case kAny: give(votes != 0); break;
        case kUniform: give(votes == 0 || votes == group); break;
        case kActive: give(group); break;
        case kMatchAny: match_any(warp, group); break;
        case kMatchAll: {
            bool equal = true;
            for_lanes(group, [&](unsigned lane) { equal = equal && warp.value[lane] == warp.value[first]; });
            give(equal ? group : 0);
            break;
        }
        case kCall: {
            WarpCall call{group, {}};
            for_lanes(group, [&](unsigned lane) { call.operands[lane] = reinterpret_cast<void*>(warp.value[lane]); });
            warp.function[first](call);
            break;
        }
        default: give(reduced(warp, group, operation)); break;
    }
    warp.waiting &= ~group;
    warp.ready |= group;
}

// Whether all lanes of `group`, which all wait, wait for the same operation under the same mask.
bool agree(const Warp& warp, uint32_t group) {
    if (warp.uniform) return true;
    const int first = __builtin_ctz(group);
    bool same = true;
    for_lanes(group, [&](unsigned lane) { same = same && warp.operation[lane] == warp.operation[first] && warp.mask[lane] == warp.mask[first]; });
    return same;
}

}  // namespace

// Called when no lane of the warp is ready. Completes what lanes that have exited since have made complete, else the
// lanes that ask together which of them are active. Returns whether a lane became ready.
bool Worker::complete_waiting(Warp& warp) {
    for (uint32_t rest = warp.waiting; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        const uint32_t group = warp.mask[lane] & warp.alive;
        if (warp.operation[lane] != kActive && (group & warp.waiting) == group && agree(warp, group)) return complete(warp, group), true;
    }
    for (uint32_t rest = warp.waiting; rest != 0; rest &= rest - 1) {
        const int lane = __builtin_ctz(rest);
        if (warp.operation[lane] != kActive) continue;
        uint32_t group = 0;
        for_lanes(warp.waiting, [&](unsigned other) {
            if (warp.operation[other] == kActive && warp.site[other] == warp.site[lane]) group |= 1u << other;
        });
        return complete(warp, group), true;
    }
    return false;
}

uint64_t Worker::warp_operation(int operation, uint32_t mask, uint64_t value, int argument, int width, WarpFunction function, const void* site) {
    if (running_ == nullptr) throw DeviceFault(719, "internal error: a warp operation in a kernel that was compiled without one");
    const unsigned lane = running_->thread.lane;
    Warp& warp = warps_[running_->thread.linear / 32];
    const uint32_t self = 1u << lane;
    mask |= self;
    warp.uniform = warp.waiting == 0 || (warp.uniform && warp.operation[__builtin_ctz(warp.waiting)] == operation && warp.mask[__builtin_ctz(warp.waiting)] == mask);
    warp.operation[lane] = operation;
    warp.mask[lane] = mask;
    warp.value[lane] = value;
    warp.argument[lane] = argument;
    warp.width[lane] = width;
    warp.function[lane] = function;
    warp.site[lane] = site;
    warp.ready &= ~self;
    warp.waiting |= self;
    const uint32_t group = mask & warp.alive;
    if ((group & warp.waiting) == group && operation != kActive && agree(warp, group))
        complete(warp, group);
    else
        wait(warp);
    return warp.result[lane];
}

// Faults -----------------------------------------------------------------------------------------------------------

std::string Worker::place() const {
    const Thread& thread = running_ != nullptr ? running_->thread : loop_thread_;
    const auto triple = [](uint3 v) { return "(" + std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z) + ")"; };
    std::string text = std::string("kernel ") + grid_->kernel->name + ", block " + triple(thread.block_index);
    return running_ != nullptr ? text + ", thread " + triple(thread.thread_index) : text;
}

void Worker::deadlock() {
    unsigned in_warp = 0;
    for (const Warp& warp : warps_) in_warp += static_cast<unsigned>(__builtin_popcount(warp.waiting));
    stacks_made_ = 0;
    throw DeviceFault(702, "deadlock: " + std::to_string(at_barrier_) + " threads wait at a block barrier and " + std::to_string(in_warp) +
                               " at a warp operation whose mask names lanes that never come (" + place() + ")");
}

uint64_t Worker::random() {
    random_state_ ^= random_state_ << 13;
    random_state_ ^= random_state_ >> 7;
    random_state_ ^= random_state_ << 17;
    return random_state_ >> 8;
}

// Grid barriers ----------------------------------------------------------------------------------------------------

struct GridBarrier::State {
    std::mutex mutex;
    std::condition_variable changed;
    unsigned expected, arrived = 0;
    uint64_t generation = 0;
};

GridBarrier::GridBarrier(unsigned blocks) : state(new State) { state->expected = blocks; }
GridBarrier::~GridBarrier() = default;

void GridBarrier::wait(bool leaving) {
    std::unique_lock lock(state->mutex);
    if (leaving)
        --state->expected;
    else
        ++state->arrived;
    if (state->arrived == state->expected) {
        state->arrived = 0;
        ++state->generation;
        state->changed.notify_all();
        return;
    }
    if (leaving) return;
    const uint64_t generation = state->generation;
    state->changed.wait(lock, [&] { return state->generation != generation; });
}

}  // namespace dice_cpu
