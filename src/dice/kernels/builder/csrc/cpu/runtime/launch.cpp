// Launches: configuration, what the hardware would refuse, blocks over cores, and the error state.
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <vector>

#include "../include/cuda_runtime_api.h"
#include "../../extension/ledger.h"
#include "block.h"
#include "control.h"

namespace dice_cpu {

namespace {

constexpr int kDefaultShared = 49152, kMaxShared = 232448;  // bytes a block: without and with cudaFuncSetAttribute
constexpr unsigned kMaxCooperative = 256;

struct Configuration {
    dim3 grid, block;
    size_t shared;
    bool cooperative;
};

struct State {
    std::mutex mutex;
    std::unordered_map<const void*, int> shared_limits;
    std::unordered_map<const void*, void (*)(const void*, void**)> stubs;
    std::atomic<int> last_error{0};
    std::atomic<int> sticky_error{0};
    Order order = Order::kAscending;
    uint64_t seed = 1;
    std::string order_kernel;
    std::string fault;
    std::atomic<bool> enabled{true};  // else launches do nothing
    dice_ledger::Page* ledger = nullptr;
};

State& state() {
    static auto* one = new State;  // never destroyed: worker threads may outlive static destructors
    return *one;
}

thread_local std::vector<Configuration> configurations;

int available_threads() {
    if (const char* text = std::getenv("OMP_NUM_THREADS"); text != nullptr && std::atoi(text) > 0) return std::atoi(text);
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// A grid being run: workers take chunks of blocks, in order, until none is left or one has failed.
struct Job {
    explicit Job(const Grid& grid_) : grid(grid_) {}
    const Grid& grid;
    uint64_t chunk = 1;
    std::atomic<uint64_t> next{0};
    std::atomic<bool> failed{false};
    std::mutex mutex;
    std::exception_ptr fault;

    void work(Worker& worker) {
        try {
            worker.begin(grid);
            const uint64_t blocks = grid.blocks();
            while (!failed.load(std::memory_order_relaxed)) {
                const uint64_t first = next.fetch_add(chunk, std::memory_order_relaxed);
                if (first >= blocks) break;
                for (uint64_t i = first; i < first + chunk && i < blocks; ++i)
                    worker.run_block(grid.order == Order::kDescending ? blocks - 1 - i : i);
                if (grid.barrier != nullptr) break;  // cooperative: one block each
            }
        } catch (...) {
            failed = true;
            std::lock_guard lock(mutex);
            if (!fault) fault = std::current_exception();
        }
        worker.end();
        if (grid.barrier != nullptr) grid.barrier->wait(true);
    }
};

// Threads that wait for jobs. Made on first use, and again in a child process after fork.
class Pool {
public:
    static Pool& instance() {
        static std::mutex mutex;
        static Pool* pool = nullptr;
        static pid_t owner = 0;
        std::lock_guard lock(mutex);
        if (pool == nullptr || owner != getpid()) {
            pool = new Pool;  // the parent's, if any, is left alone: its threads do not exist here
            owner = getpid();
        }
        return *pool;
    }

    void run(Job& job, unsigned helpers) {
        std::unique_lock lock(mutex_);
        while (threads_ < helpers) {
            try {
                std::thread([this] { serve(); }).detach();
            } catch (const std::system_error&) {
                break;  // no more threads allowed: fewer do the work
            }
            ++threads_;
        }
        if (job.grid.barrier != nullptr && threads_ < helpers) dice_cpu_unsupported("a cooperative launch with more blocks than threads are allowed");
        job_ = &job;
        wanted_ = std::min(helpers, threads_);
        lock.unlock();
        wake_.notify_all();
        static thread_local Worker own;
        job.work(own);
        lock.lock();
        if (job.grid.barrier == nullptr) wanted_ = 0;  // a cooperative grid needs every helper that was asked for
        idle_.wait(lock, [this] { return busy_ == 0 && wanted_ == 0; });
        job_ = nullptr;
    }

    std::mutex one_at_a_time;

private:
    void serve() {
        Worker worker;
        std::unique_lock lock(mutex_);
        for (;;) {
            wake_.wait(lock, [this] { return wanted_ != 0; });
            --wanted_;
            ++busy_;
            Job& job = *job_;
            lock.unlock();
            job.work(worker);
            lock.lock();
            if (--busy_ == 0) idle_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_, idle_;
    unsigned threads_ = 0, wanted_ = 0, busy_ = 0;
    Job* job_ = nullptr;
};

void run_grid(Grid& grid) {
    const uint64_t blocks = grid.blocks();
    static const int limit = available_threads();
    const bool small = blocks * grid.threads() < 2048 && !grid.kernel->fibres;
    uint64_t workers = grid.cooperative ? blocks : small ? 1 : std::min<uint64_t>(blocks, static_cast<uint64_t>(limit));
    Job job(grid);
    job.chunk = grid.cooperative ? 1 : std::max<uint64_t>(1, blocks / (workers * 16));
    std::unique_ptr<GridBarrier> barrier;
    if (grid.cooperative) {
        barrier = std::make_unique<GridBarrier>(static_cast<unsigned>(blocks));
        grid.barrier = barrier.get();
    }
    static thread_local Worker own;
    if (workers == 1) {
        job.work(own);
    } else {
        Pool& pool = Pool::instance();
        std::lock_guard lock(pool.one_at_a_time);
        pool.run(job, static_cast<unsigned>(workers - 1));
    }
    if (job.fault) std::rethrow_exception(job.fault);
}

// What the driver would answer to this launch, before anything runs.
int refusal(const Kernel& kernel, const Configuration& c) {
    const uint64_t threads = uint64_t{c.block.x} * c.block.y * c.block.z;
    if (c.grid.x == 0 || c.grid.y == 0 || c.grid.z == 0 || threads == 0) return cudaErrorInvalidConfiguration;
    if (c.block.x > 1024 || c.block.y > 1024 || c.block.z > 64 || threads > 1024) return cudaErrorInvalidConfiguration;
    if (c.grid.x > 0x7FFFFFFFu || c.grid.y > 65535 || c.grid.z > 65535) return cudaErrorInvalidConfiguration;
    if (threads > kernel.max_threads) return cudaErrorInvalidConfiguration;
    int limit = kDefaultShared;
    if (kernel.stub != nullptr) {
        std::lock_guard lock(state().mutex);
        const auto found = state().shared_limits.find(kernel.stub);
        if (found != state().shared_limits.end()) limit = std::max(limit, found->second);
    }
    return c.shared > static_cast<size_t>(limit) ? cudaErrorInvalidValue : cudaSuccess;
}

void launch(const Kernel& kernel, RunThread run, void* closure) {
    if (configurations.empty()) {
        dice_cpu_set_error(cudaErrorMissingConfiguration);
        return;
    }
    const Configuration c = configurations.back();
    configurations.pop_back();
    if (Worker::current() != nullptr) dice_cpu_unsupported("a launch from device code");
    if (dice_cpu_keeping() != 0) {  // sizes can carry numbers too, and so can the choice of a kernel
        const auto name = static_cast<uint32_t>(dice_ledger::name_hash(kernel.name));
        dice_cpu_keep(&c, offsetof(Configuration, cooperative));
        dice_cpu_keep(&name, sizeof name);
    }
    if (!state().enabled) return;
    const auto mark = [&kernel](bool refused) { dice_ledger::mark(state().ledger, kernel.name, refused); };
    if (state().sticky_error != 0) {
        mark(true);
        throw std::runtime_error("CUDA error: " + std::string(dice_cpu_error_text(state().sticky_error)) + " (by an earlier launch: " + state().fault + ")");
    }
    const int error = refusal(kernel, c);
    if (error != 0) {
        dice_cpu_set_error(error);
        mark(true);
        return;
    }
    if (uint64_t{c.grid.x} * c.block.x > 0x7FFFFFFFu - 4096) dice_cpu_unsupported("a grid of more than 2^31 threads in x");
    if (c.cooperative && uint64_t{c.grid.x} * c.grid.y * c.grid.z > kMaxCooperative) dice_cpu_unsupported("a cooperative launch of more than 256 blocks");
    mark(false);
    const bool ordered = state().order_kernel.empty() || state().order_kernel == kernel.name;
    Grid grid{&kernel, run, closure, c.grid, c.block, c.shared, c.cooperative, ordered ? state().order : Order::kAscending, state().seed, nullptr};
    try {
        run_grid(grid);
    } catch (const DeviceFault& fault) {
        state().sticky_error = state().last_error = fault.error;
        state().fault = fault.what();
        throw std::runtime_error(std::string("CUDA error: ") + dice_cpu_error_text(fault.error) + ": " + fault.what());
    }
}

// The worker of this thread, for an operation that only device code may ask for.
Worker& inside_kernel(const char* operation) {
    Worker* worker = Worker::current();
    if (worker == nullptr) throw std::runtime_error(std::string(operation) + " outside a kernel");
    return *worker;
}

}  // namespace

}  // namespace dice_cpu

using namespace dice_cpu;

extern "C" {

void dice_cpu_configure(dim3 grid, dim3 block, size_t shared_bytes, void*) { configurations.push_back({grid, block, shared_bytes, false}); }

void dice_cpu_launch(const Kernel* kernel, void (*run)(void*, Thread&), void* closure) { launch(*kernel, run, closure); }

void dice_cpu_register(const void* stub, void (*call)(const void*, void**)) {
    std::lock_guard lock(state().mutex);
    state().stubs[stub] = call;
}

int dice_cpu_launch_kernel(const void* stub, dim3 grid, dim3 block, void** arguments, size_t shared, int cooperative) {
    void (*call)(const void*, void**) = nullptr;
    {
        std::lock_guard lock(state().mutex);
        const auto found = state().stubs.find(stub);
        if (found == state().stubs.end()) return dice_cpu_set_error(cudaErrorInvalidDeviceFunction);
        call = found->second;
    }
    configurations.push_back({grid, block, shared, cooperative != 0});
    call(stub, arguments);
    return dice_cpu_last_error(0);
}

int dice_cpu_set_shared_limit(const void* stub, int bytes) {
    if (bytes < 0 || bytes > kMaxShared) return cudaErrorInvalidValue;
    std::lock_guard lock(state().mutex);
    state().shared_limits[stub] = bytes;
    return cudaSuccess;
}

int dice_cpu_last_error(int clear) {
    const int error = state().last_error;
    if (clear != 0) state().last_error = state().sticky_error.load();
    return error;
}

int dice_cpu_set_error(int error) {
    if (error != 0) state().last_error = error;
    return error;
}

Thread* dice_cpu_thread() {
    static thread_local Thread outside{};
    Worker* worker = Worker::current();
    return worker != nullptr ? worker->thread() : &outside;
}

int dice_cpu_block(int operation, int predicate) {
    return inside_kernel("a barrier").block_operation(operation, predicate);
}

__attribute__((noinline)) uint64_t dice_cpu_warp(int operation, uint32_t mask, uint64_t value, int argument, int width) {
    return inside_kernel("a warp operation").warp_operation(operation, mask, value, argument, width, nullptr, __builtin_return_address(0));
}

void dice_cpu_warp_call(uint32_t mask, WarpFunction function, void* operand) {
    inside_kernel("a warp operation").warp_operation(kCall, mask, reinterpret_cast<uintptr_t>(operand), 0, 32, function, nullptr);
}

void dice_cpu_grid_sync() {
    inside_kernel("a barrier").grid_sync();
}

void dice_cpu_yield() {
    if (Worker* worker = Worker::current(); worker != nullptr) worker->yield();
}

void dice_cpu_fault(int cuda_error, const char* what, const char* file, int line) {
    const char* name = std::strrchr(file, '/');
    std::string text = std::string(what) + " at " + (name != nullptr ? name + 1 : file) + ":" + std::to_string(line);
    if (Worker* worker = Worker::current(); worker != nullptr) text += ", " + worker->place();
    throw DeviceFault(cuda_error, text);
}

void dice_cpu_unsupported(const char* what) { throw std::runtime_error(std::string("unsupported_on_cpu: ") + what); }

// Whoever asks first gets it: the loader, before it loads the first object.
DICE_CPU_API const Control* dice_cpu_control() {
    static const Control control = {
        [](void* page) { state().ledger = static_cast<dice_ledger::Page*>(page); },
        [](int on) { state().enabled = on != 0; },
        // Order in which the threads, warps and blocks of a grid take turns: 0 ascending, 1 descending, 2 random, 3 ascending
        // and with NaN in shared memory whenever a block begins, 4 with a large number in it and behind it. It holds for
        // kernels named `kernel`, or all when that is null or empty. A program without a race, which writes shared memory
        // before it reads it and none behind it, computes the same in any order.
        [](int order, uint64_t seed, const char* kernel) {
            state().order = static_cast<Order>(order);
            state().seed = seed;
            state().order_kernel = kernel != nullptr ? kernel : "";
        },
        // The error of the last failed launch as text, "" without one.
        []() { return state().fault.c_str(); },
        // Forgets all errors, which a CUDA process could not: for a process that runs several candidates.
        []() {
            state().last_error = state().sticky_error = 0;
            state().fault.clear();
            configurations.clear();
        },
        keep_arguments,
        kept_piece,
        after_launches,
        guard_memory,
        memory_fault,
        steps_taken,
    };
    static std::atomic<bool> given{false};
    return given.exchange(true) ? nullptr : &control;
}
}
