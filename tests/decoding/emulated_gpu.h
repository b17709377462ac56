// Stands in for csrc/primitives.cuh where there is no GPU: threads of a cluster are fibers, one after the other, and what
// PTX does is done as its manual says. Asynchronous copies arrive either at once or when they are waited for, which shows
// slots that are filled too early or read too early; dynamic shared memory begins as NaN.
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

using std::max;
using std::min;
typedef unsigned short bf16;
struct alignas(16) uint4 { unsigned x, y, z, w; };
static uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
struct alignas(8) uint2 { unsigned x, y; };
static uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
struct alignas(8) float2 { float x, y; };
static float2 make_float2(float x, float y) { return {x, y}; }
struct alignas(16) float4 { float x, y, z, w; };
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
struct Index { unsigned x; };

#define __global__
#define __shared__ static  // right where a cluster is one block, since blocks run one after the other
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __cluster_dims__(x, y, z)
#define LET_NEXT_START() (void)0
#define WAIT_FOR_PREVIOUS() (void)0

struct Barrier {
    int arrived = 0, round = 0;
};
struct Block {
    std::vector<uint4> shared;
    Barrier barrier;
    int expected = -1, came = 0;  // bytes
};
struct Warp {
    Barrier barrier;
    unsigned places[2][32][6];
};
struct Copy {
    unsigned to;
    const void* from;
};
struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    Index thread, block;
    Block* own;
    Warp* warp;
    int parity = 0, cluster_round = 0;
    bool ended = false;
    std::vector<Copy> open;
    std::deque<std::vector<Copy>> groups;
};

static std::vector<Block> blocks;  // of the cluster that runs
static std::vector<std::unique_ptr<Fiber>> fibers;
static Barrier cluster;
static Fiber* now;
static ucontext_t scheduler;
static std::function<void()> work;
static bool copies_at_once;

#define threadIdx (now->thread)
#define blockIdx (now->block)
#define shared_memory (now->own->shared.data())
#define COMMIT_COPIES() commit_copies()
#define WAIT_FOR_COPIES(pending) wait_for_copies(pending)

static int come_to(Barrier& barrier, int size) {  // returns the round that ends when all have come
    const int round = barrier.round;
    if (++barrier.arrived == size) {
        barrier.arrived = 0;
        ++barrier.round;
    }
    return round;
}
static void leave(Barrier& barrier, int round) {
    while (barrier.round == round) swapcontext(&now->context, &scheduler);
}
static void meet(Barrier& barrier, int size) { leave(barrier, come_to(barrier, size)); }

static void __syncthreads() { meet(now->own->barrier, fibers.size() / blocks.size()); }
static void arrive_at_cluster() { now->cluster_round = come_to(cluster, fibers.size()); }
static void wait_for_cluster() { leave(cluster, now->cluster_round); }

static unsigned address_of(const void* shared) { return (const char*)shared - (const char*)shared_memory; }

static void expect_bytes(void*, unsigned bytes) { now->own->expected = bytes; }
template <class Value>
static void send_to_block(const Value* place, unsigned block, Value value, const void*) {
    memcpy((char*)blocks.at(block).shared.data() + address_of(place), &value, sizeof value);
    blocks.at(block).came += sizeof value;
}
static void wait_for_bytes(const void*) {
    for (int turns = 0; now->own->came != now->own->expected; ++turns) {
        if (now->own->came > now->own->expected || turns > 100000) {
            fprintf(stderr, "%d bytes came, %d were expected\n", now->own->came, now->own->expected);
            abort();
        }
        swapcontext(&now->context, &scheduler);
    }
}

static void arrive(const Copy& copy) {
    if (copy.to % 16 || copy.to + 16 > now->own->shared.size() * 16 || (size_t)copy.from % 16) {
        fprintf(stderr, "a copy to place %u of shared memory\n", copy.to);
        abort();
    }
    char* const to = (char*)shared_memory + copy.to;
    memcpy(to, copy.from, 16);
}

static void copy_ahead(unsigned to, const bf16* from) {
    copies_at_once ? arrive({to, from}) : now->open.push_back({to, from});
}

static void commit_copies() {
    now->groups.push_back(now->open);
    now->open.clear();
}

static void wait_for_copies(size_t pending) {
    for (; now->groups.size() > pending; now->groups.pop_front())
        for (const Copy& copy : now->groups.front()) arrive(copy);
}

static float wide(unsigned value) {
    const unsigned bits = value << 16;
    float found;
    memcpy(&found, &bits, 4);
    return found;
}

static unsigned rounded(float value) {  // to the nearest, ties to even
    unsigned bits;
    memcpy(&bits, &value, 4);
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
static unsigned narrow(float low, float high) { return rounded(low) | rounded(high) << 16; }

// What every lane of the warp gave to the same call.
static unsigned (*exchanged(std::initializer_list<unsigned> own))[6] {
    unsigned(*const places)[6] = now->warp->places[now->parity ^= 1];
    std::copy(own.begin(), own.end(), places[now->thread.x % 32]);
    meet(now->warp->barrier, 32);
    return places;
}

static void multiply(float (&sum)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
    const unsigned(*const of)[6] = exchanged({a0, a1, a2, a3, b0, b1});
    const int g = now->thread.x % 32 / 4, t = now->thread.x % 4;
    auto half = [](unsigned both, int k) { return (double)wide(k % 2 ? both >> 16 : both & 0xffff); };
    for (int i = 0; i < 4; ++i) {  // row g (+ 8), column 2t (+ 1); k = 2q + j of register 0, 2q + 8 + j of the next
        const int column = 2 * t + i % 2;
        double total = sum[i];
        for (int k = 0; k < 16; ++k) {
            const int q = k % 8 / 2, high = k / 8;
            total += half(of[g * 4 + q][high * 2 + i / 2], k) * half(of[column * 4 + q][4 + high], k);
        }
        sum[i] = total;
    }
}

static float __shfl_xor_sync(unsigned, float value, int by) {
    unsigned bits;
    memcpy(&bits, &value, 4);
    bits = exchanged({bits})[now->thread.x % 32 ^ by][0];
    memcpy(&value, &bits, 4);
    return value;
}

static unsigned weigh(unsigned x, unsigned weight, float& squares) {
    const float low = wide(x & 0xffff), high = wide(x >> 16);
    squares += low * low + high * high;
    return narrow(low * wide(weight & 0xffff), high * wide(weight >> 16));
}

static float rsqrtf(float value) { return 1 / std::sqrt(value); }
#define __expf(value) std::exp(value)

static void enter() {
    work();
    now->ended = true;
    swapcontext(&now->context, &scheduler);
}

static void launch(int count, int threads, int together, int shared_bytes, std::function<void()> kernel) {
    work = kernel;
    for (int first = 0; first < count; first += together) {
        blocks.assign(together, {});
        cluster = {};
        fibers.clear();
        std::vector<Warp> warps(together * threads / 32);
        for (auto& block : blocks) block.shared.assign(shared_bytes / 16, {~0u, ~0u, ~0u, ~0u});
        for (int i = 0; i < together * threads; ++i) {
            auto fiber = std::make_unique<Fiber>();
            fiber->stack.resize(1 << 16);
            fiber->thread.x = i % threads;
            fiber->block.x = first + i / threads;
            fiber->own = &blocks[i / threads];
            fiber->warp = &warps[i / 32];
            getcontext(&fiber->context);
            fiber->context.uc_stack.ss_sp = fiber->stack.data();
            fiber->context.uc_stack.ss_size = fiber->stack.size();
            fiber->context.uc_link = nullptr;
            makecontext(&fiber->context, enter, 0);
            fibers.push_back(std::move(fiber));
        }
        if (!copies_at_once) std::reverse(fibers.begin(), fibers.end());  // no order of warps is promised
        for (bool going = true; going;) {
            going = false;
            for (auto& fiber : fibers) {
                if (fiber->ended) continue;
                going = true;
                now = fiber.get();
                swapcontext(&scheduler, &now->context);
            }
        }
    }
}
