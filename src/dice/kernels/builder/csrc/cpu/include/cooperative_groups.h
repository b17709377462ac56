// Cooperative groups: thread blocks, tiles of a warp, coalesced groups, and grids of cooperative launches.
#pragma once

#include <initializer_list>
#include <type_traits>

#include "cuda_runtime_api.h"

#pragma GCC visibility push(hidden)

namespace cooperative_groups {

namespace details {

// One lane's view of a group of lanes of its warp, named by a mask.
struct Lanes {
    unsigned mask = 0xFFFFFFFFu;
    unsigned size() const { return static_cast<unsigned>(__builtin_popcount(mask)); }
    unsigned rank() const { return static_cast<unsigned>(__builtin_popcount(mask & ((1u << dice_cpu_thread()->lane) - 1))); }
    unsigned lane_of(unsigned rank) const {
        unsigned rest = mask;
        while (rank-- > 0) rest &= rest - 1;
        return static_cast<unsigned>(__builtin_ctz(rest));
    }
    // The mask as seen from the group: bit i for its i-th member.
    unsigned packed(unsigned lanes) const {
        unsigned result = 0, index = 0;
        for (unsigned rest = mask; rest != 0; rest &= rest - 1, ++index)
            if ((lanes >> __builtin_ctz(rest)) & 1) result |= 1u << index;
        return result;
    }
    template <class T>
    T from_rank(T value, unsigned rank) const {
        return dice_cpu::together(mask, value, static_cast<int>(lane_of(rank)), [](unsigned members, dice_cpu::Operand<T>** all) {
            for (unsigned rest = members; rest != 0; rest &= rest - 1) {
                dice_cpu::Operand<T>* own = all[__builtin_ctz(rest)];
                own->result = all[own->argument] != nullptr ? all[own->argument]->value : own->value;
            }
        });
    }
    template <class T>
    unsigned match_any(T value) const { return packed(__match_any_sync(mask, value)); }
};

template <class T, class F>
struct Step {
    T value;
    F function;
};

}  // namespace details

template <class T> struct plus { T operator()(const T& a, const T& b) const { return a + b; } };
template <class T> struct less { T operator()(const T& a, const T& b) const { return b < a ? b : a; } };
template <class T> struct greater { T operator()(const T& a, const T& b) const { return a < b ? b : a; } };
template <class T> struct bit_and { T operator()(const T& a, const T& b) const { return a & b; } };
template <class T> struct bit_or { T operator()(const T& a, const T& b) const { return a | b; } };
template <class T> struct bit_xor { T operator()(const T& a, const T& b) const { return a ^ b; } };

// Any group by value: what a block, a grid or lanes of a warp are when they are passed on as just a group.
class thread_group {
public:
    void sync() const {
        if (kind_ == Kind::block) __syncthreads();
        else if (kind_ == Kind::grid) dice_cpu_grid_sync();
        else __syncwarp(lanes_.mask);
    }
    unsigned long long size() const { return kind_ == Kind::lanes ? lanes_.size() : blocks() * threads(); }
    unsigned long long num_threads() const { return size(); }
    unsigned long long thread_rank() const {
        const dice_cpu::Thread& t = *dice_cpu_thread();
        if (kind_ == Kind::lanes) return lanes_.rank();
        if (kind_ == Kind::block) return t.linear;
        const unsigned long long block = (1ull * t.block_index.z * t.grid_dim.y + t.block_index.y) * t.grid_dim.x + t.block_index.x;
        return block * threads() + t.linear;
    }

protected:
    enum class Kind { block, grid, lanes };
    explicit thread_group(Kind kind) : kind_(kind) {}
    explicit thread_group(unsigned mask) : kind_(Kind::lanes) { lanes_.mask = mask; }
    Kind kind_;
    details::Lanes lanes_;

private:
    static unsigned long long threads() {
        const dim3 block = dice_cpu_thread()->block_dim;
        return 1ull * block.x * block.y * block.z;
    }
    unsigned long long blocks() const {
        const dim3 grid = dice_cpu_thread()->grid_dim;
        return kind_ == Kind::grid ? 1ull * grid.x * grid.y * grid.z : 1;
    }
};

class thread_block : public thread_group {
public:
    thread_block() : thread_group(Kind::block) {}
    static void sync() { __syncthreads(); }
    struct arrival_token {};
    static arrival_token barrier_arrive() { return {}; }
    static void barrier_wait(arrival_token&&) { __syncthreads(); }
    static unsigned thread_rank() { return dice_cpu_thread()->linear; }
    static dim3 group_index() { return dice_cpu_thread()->block_index; }
    static dim3 thread_index() { return dice_cpu_thread()->thread_index; }
    static dim3 group_dim() { return dice_cpu_thread()->block_dim; }
    static dim3 dim_threads() { return group_dim(); }
    static unsigned num_threads() { return group_dim().x * group_dim().y * group_dim().z; }
    static unsigned size() { return num_threads(); }
};
inline thread_block this_thread_block() { return {}; }

class grid_group : public thread_group {
public:
    grid_group() : thread_group(Kind::grid) {}
    static bool is_valid() { return true; }
    static void sync() { dice_cpu_grid_sync(); }
    static dim3 group_dim() { return dice_cpu_thread()->grid_dim; }
    static dim3 dim_blocks() { return group_dim(); }
    static dim3 block_index() { return dice_cpu_thread()->block_index; }
    static unsigned long long num_blocks() { return 1ull * group_dim().x * group_dim().y * group_dim().z; }
    static unsigned long long block_rank() {
        const dice_cpu::Thread& t = *dice_cpu_thread();
        return (1ull * t.block_index.z * t.grid_dim.y + t.block_index.y) * t.grid_dim.x + t.block_index.x;
    }
    static unsigned long long num_threads() { return num_blocks() * thread_block::num_threads(); }
    static unsigned long long size() { return num_threads(); }
    static unsigned long long thread_rank() { return block_rank() * thread_block::num_threads() + thread_block::thread_rank(); }
};
inline grid_group this_grid() { return {}; }

namespace details {

// What tiles and coalesced groups have in common.
class LaneGroup : public thread_group {
public:
    void sync() const { __syncwarp(lanes_.mask); }
    template <class T> T shfl(T value, int rank) const { return lanes_.from_rank(value, static_cast<unsigned>(rank) % lanes_.size()); }
    template <class T> T shfl_down(T value, unsigned delta) const {
        const unsigned to = lanes_.rank() + delta;
        return lanes_.from_rank(value, to < lanes_.size() ? to : lanes_.rank());
    }
    template <class T> T shfl_up(T value, unsigned delta) const {
        return lanes_.from_rank(value, lanes_.rank() >= delta ? lanes_.rank() - delta : lanes_.rank());
    }
    template <class T> T shfl_xor(T value, unsigned mask) const {
        const unsigned to = lanes_.rank() ^ mask;
        return lanes_.from_rank(value, to < lanes_.size() ? to : lanes_.rank());
    }
    int any(int predicate) const { return __any_sync(lanes_.mask, predicate); }
    int all(int predicate) const { return __all_sync(lanes_.mask, predicate); }
    unsigned ballot(int predicate) const { return lanes_.packed(__ballot_sync(lanes_.mask, predicate)); }
    template <class T> unsigned match_any(T value) const { return lanes_.match_any(value); }
    template <class T> unsigned match_all(T value, int& predicate) const { return lanes_.packed(__match_all_sync(lanes_.mask, value, &predicate)); }
    unsigned thread_rank() const { return lanes_.rank(); }
    unsigned num_threads() const { return lanes_.size(); }
    unsigned size() const { return lanes_.size(); }
    const Lanes& lanes() const { return lanes_; }

protected:
    explicit LaneGroup(unsigned mask) : thread_group(mask) {}
};

inline unsigned tile_mask(unsigned width) {
    const unsigned first = dice_cpu_thread()->lane / width * width;
    return (width == 32 ? 0xFFFFFFFFu : (1u << width) - 1) << first;
}

}  // namespace details

template <unsigned Size, class Parent = void>
class thread_block_tile : public details::LaneGroup {
    static_assert(Size <= 32, "unsupported_on_cpu: thread_block_tile of more than 32 threads");
    static_assert((Size & (Size - 1)) == 0, "the size of a tile is a power of two");

public:
    thread_block_tile() : thread_block_tile(thread_block::thread_rank() / Size, (thread_block::num_threads() + Size - 1) / Size) {}
    thread_block_tile(unsigned meta_rank, unsigned meta_size) : LaneGroup(details::tile_mask(Size)), meta_rank_(meta_rank), meta_size_(meta_size) {}
    template <class OtherParent>
    thread_block_tile(const thread_block_tile<Size, OtherParent>& other) : thread_block_tile(other.meta_group_rank(), other.meta_group_size()) {}
    static constexpr unsigned num_threads() { return Size; }
    static constexpr unsigned size() { return Size; }
    unsigned thread_rank() const { return dice_cpu_thread()->lane % Size; }
    unsigned meta_group_rank() const { return meta_rank_; }
    unsigned meta_group_size() const { return meta_size_; }

private:
    unsigned meta_rank_, meta_size_;  // among the tiles of the group that was parted: a block, or a larger tile
};

class coalesced_group : public details::LaneGroup {
public:
    explicit coalesced_group(unsigned mask) : LaneGroup(mask) {}
    static unsigned meta_group_rank() { return 0; }
    static unsigned meta_group_size() { return 1; }
};
inline coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

template <unsigned Size, class Parent>
inline thread_block_tile<Size, Parent> tiled_partition(const Parent& parent) {
    return {static_cast<unsigned>(parent.thread_rank() / Size), static_cast<unsigned>((parent.size() + Size - 1) / Size)};
}
template <class Parent>
inline coalesced_group tiled_partition(const Parent&, unsigned size) { return coalesced_group(details::tile_mask(size)); }
template <class Group>
inline coalesced_group binary_partition(const Group& group, bool predicate) {
    const unsigned mask = group.lanes().mask, votes = __ballot_sync(mask, predicate);
    return coalesced_group(predicate ? votes : mask & ~votes);
}
template <class Group, class T>
inline coalesced_group labeled_partition(const Group& group, T label) { return coalesced_group(__match_any_sync(group.lanes().mask, label)); }

template <class Group> inline void sync(const Group& group) { group.sync(); }
template <class Group> inline auto thread_rank(const Group& group) { return group.thread_rank(); }
template <class Group> inline auto group_size(const Group& group) { return group.size(); }
inline void synchronize(const thread_block& block) { block.sync(); }

namespace details {

// Applies `function` from lane to lane; each result is the inclusive scan up to its lane.
template <class T, class F>
T scanned(const Lanes& lanes, T value, F function, bool total) {
    using S = Step<T, F>;
    const S result = dice_cpu::together(lanes.mask, S{value, function}, total, [](unsigned members, dice_cpu::Operand<S>** all) {
        dice_cpu::Operand<S>* before = nullptr;
        for (unsigned rest = members; rest != 0; rest &= rest - 1) {
            dice_cpu::Operand<S>* own = all[__builtin_ctz(rest)];
            if (before != nullptr) own->result.value = own->value.function(before->result.value, own->value.value);
            before = own;
        }
        for (unsigned rest = members; rest != 0; rest &= rest - 1)
            if (all[__builtin_ctz(rest)]->argument != 0) all[__builtin_ctz(rest)]->result.value = before->result.value;
    });
    return result.value;
}

}  // namespace details

template <class Group, class T, class F>
inline auto reduce(const Group& group, T value, F function) -> decltype(function(value, value)) { return details::scanned(group.lanes(), value, function, true); }
template <class Group, class T, class F>
inline T inclusive_scan(const Group& group, T value, F function) { return details::scanned(group.lanes(), value, function, false); }
template <class Group, class T>
inline T inclusive_scan(const Group& group, T value) { return details::scanned(group.lanes(), value, plus<T>{}, false); }
template <class Group, class T, class F>
inline T exclusive_scan(const Group& group, T value, F function) {
    const T inclusive = details::scanned(group.lanes(), value, function, false), before = group.shfl_up(inclusive, 1);
    return group.thread_rank() == 0 ? T{} : before;
}
template <class Group, class T>
inline T exclusive_scan(const Group& group, T value) { return exclusive_scan(group, value, plus<T>{}); }

template <class Group, class F>
inline void invoke_one(const Group& group, F&& f) {
    if (group.thread_rank() == 0) f();
}

// Copies at once, each thread its share; the wait is a barrier.
template <class Group, class T>
inline void memcpy_async(const Group& group, T* to, const T* from, size_t bytes) {
    const size_t n = bytes / sizeof(T);
    for (size_t i = group.thread_rank(); i < n; i += group.size()) to[i] = from[i];
}
template <class Group> inline void wait(const Group& group) { group.sync(); }
template <unsigned Stages, class Group> inline void wait_prior(const Group& group) { group.sync(); }

}  // namespace cooperative_groups

#pragma GCC visibility pop
