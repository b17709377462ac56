// The parts of CUB that kernels use: reductions and scans of warps and blocks, sorts of blocks, and device-wide reductions,
// scans and sorts (which run on one core). A block-wide result is valid where CUB documents it, and only there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "../cuda_runtime_api.h"

#pragma GCC visibility push(hidden)

namespace cub {

struct Sum { template <class T> T operator()(const T& a, const T& b) const { return a + b; } };
struct Max { template <class T> T operator()(const T& a, const T& b) const { return b > a ? b : a; } };
struct Min { template <class T> T operator()(const T& a, const T& b) const { return b < a ? b : a; } };
struct Equality { template <class T> bool operator()(const T& a, const T& b) const { return a == b; } };
struct NullType {};
template <class K, class V>
struct KeyValuePair {
    K key;
    V value;
};
struct ArgMax { template <class T> T operator()(const T& a, const T& b) const { return b.value > a.value || (b.value == a.value && b.key < a.key) ? b : a; } };
struct ArgMin { template <class T> T operator()(const T& a, const T& b) const { return b.value < a.value || (b.value == a.value && b.key < a.key) ? b : a; } };

enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS };
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

namespace details {
template <class T, int N>
struct alignas(T) Slots {
    char bytes[sizeof(T) * N];
    T* items() { return reinterpret_cast<T*>(bytes); }
};
}  // namespace details

template <class T, int X, BlockReduceAlgorithm A = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1, int Arch = 0>
class BlockReduce {
public:
    using TempStorage = details::Slots<T, X * Y * Z>;
    explicit BlockReduce(TempStorage& storage) : items_(storage.items()) {}
    BlockReduce() {
        static thread_local TempStorage own;
        items_ = own.items();
    }
    template <class F> T Reduce(T input, F f) { return Reduce(input, f, X * Y * Z); }
    template <class F> T Reduce(T input, F f, int valid) {
        const unsigned thread = dice_cpu_thread()->linear;
        items_[thread] = input;
        __syncthreads();
        if (thread != 0) return input;
        T total = input;
        for (int i = 1; i < valid && i < X * Y * Z; ++i) total = f(total, items_[i]);
        return total;
    }
    template <class F, int N> T Reduce(T (&inputs)[N], F f) {
        T own = inputs[0];
        for (int i = 1; i < N; ++i) own = f(own, inputs[i]);
        return Reduce(own, f);
    }
    T Sum(T input) { return Reduce(input, cub::Sum()); }
    T Sum(T input, int valid) { return Reduce(input, cub::Sum(), valid); }
    template <int N> T Sum(T (&inputs)[N]) { return Reduce(inputs, cub::Sum()); }

private:
    T* items_;
};

template <class T, int X, BlockScanAlgorithm A = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int Arch = 0>
class BlockScan {
public:
    using TempStorage = details::Slots<T, X * Y * Z + 1>;
    explicit BlockScan(TempStorage& storage) : items_(storage.items()) {}
    BlockScan() {
        static thread_local TempStorage own;
        items_ = own.items();
    }
    template <class F> void InclusiveScan(T input, T& output, F f) { T total; InclusiveScan(input, output, f, total); }
    template <class F> void InclusiveScan(T input, T& output, F f, T& total) {
        const unsigned thread = dice_cpu_thread()->linear;
        scan(input, f);
        output = items_[thread];
        total = items_[X * Y * Z - 1];
    }
    template <class F> void ExclusiveScan(T input, T& output, T first, F f) { T total; ExclusiveScan(input, output, first, f, total); }
    template <class F> void ExclusiveScan(T input, T& output, T first, F f, T& total) {
        const unsigned thread = dice_cpu_thread()->linear;
        scan(input, f);
        output = thread == 0 ? first : f(first, items_[thread - 1]);
        total = items_[X * Y * Z - 1];
    }
    void InclusiveSum(T input, T& output) { InclusiveScan(input, output, cub::Sum()); }
    void InclusiveSum(T input, T& output, T& total) { InclusiveScan(input, output, cub::Sum(), total); }
    void ExclusiveSum(T input, T& output) { ExclusiveScan(input, output, T{}, cub::Sum()); }
    void ExclusiveSum(T input, T& output, T& total) { ExclusiveScan(input, output, T{}, cub::Sum(), total); }
    template <int N> void InclusiveSum(T (&inputs)[N], T (&outputs)[N]) { T total; InclusiveSum(inputs, outputs, total); }
    template <int N> void InclusiveSum(T (&inputs)[N], T (&outputs)[N], T& total) {
        T own{}, before;
        for (int i = 0; i < N; ++i) own = own + inputs[i];
        ExclusiveSum(own, before, total);
        for (int i = 0; i < N; ++i) outputs[i] = before = before + inputs[i];
    }
    template <int N> void ExclusiveSum(T (&inputs)[N], T (&outputs)[N]) { T total; ExclusiveSum(inputs, outputs, total); }
    template <int N> void ExclusiveSum(T (&inputs)[N], T (&outputs)[N], T& total) {
        T own{}, before;
        for (int i = 0; i < N; ++i) own = own + inputs[i];
        ExclusiveSum(own, before, total);
        for (int i = 0; i < N; ++i) {
            const T input = inputs[i];
            outputs[i] = before;
            before = before + input;
        }
    }

private:
    template <class F> void scan(T input, F f) {
        const unsigned thread = dice_cpu_thread()->linear;
        items_[thread] = input;
        __syncthreads();
        if (thread == 0)
            for (int i = 1; i < X * Y * Z; ++i) items_[i] = f(items_[i - 1], items_[i]);
        __syncthreads();
    }
    T* items_;
};

template <class T, int Width = 32, int Arch = 0>
class WarpReduce {
public:
    struct TempStorage {};
    explicit WarpReduce(TempStorage&) {}
    template <class F> T Reduce(T input, F f) { return Reduce(input, f, Width); }
    template <class F> T Reduce(T input, F f, int valid) {
        struct Given {
            T value;
            F f;
        };
        const unsigned first = dice_cpu_thread()->lane / Width * Width, mask = (Width == 32 ? 0xFFFFFFFFu : (1u << Width) - 1) << first;
        const Given result = dice_cpu::together(mask, Given{input, f}, valid, [](unsigned members, dice_cpu::Operand<Given>** all) {
            dice_cpu::Operand<Given>* head = all[__builtin_ctz(members)];
            int index = 0;
            for (unsigned rest = members & (members - 1); rest != 0; rest &= rest - 1)
                if (++index < head->argument) head->result.value = head->value.f(head->result.value, all[__builtin_ctz(rest)]->value.value);
        });
        return result.value;
    }
    T Sum(T input) { return Reduce(input, cub::Sum()); }
    T Sum(T input, int valid) { return Reduce(input, cub::Sum(), valid); }
};

template <class T, int Width = 32, int Arch = 0>
class WarpScan {
public:
    struct TempStorage {};
    explicit WarpScan(TempStorage&) {}
    template <class F> void InclusiveScan(T input, T& output, F f) {
        const int lane = static_cast<int>(dice_cpu_thread()->lane) % Width;
        for (int step = 1; step < Width; step *= 2) {
            const T other = __shfl_up_sync(0xFFFFFFFFu, input, step, Width);
            if (lane >= step) input = f(other, input);
        }
        output = input;
    }
    void InclusiveSum(T input, T& output) { InclusiveScan(input, output, cub::Sum()); }
    void ExclusiveSum(T input, T& output) {
        T inclusive;
        InclusiveSum(input, inclusive);
        output = inclusive - input;
    }
};

namespace details {
// Device-wide calls come twice: first with a null pointer, to ask for temporary memory.
inline bool asks_for_size(void* storage, size_t& bytes) {
    if (storage != nullptr) return false;
    bytes = 1;
    return true;
}
}  // namespace details

struct DeviceReduce {
    template <class In, class Out, class F, class T>
    static cudaError_t Reduce(void* storage, size_t& bytes, In in, Out out, int64_t n, F f, T first, cudaStream_t = nullptr, bool = false) {
        if (details::asks_for_size(storage, bytes)) return cudaSuccess;
        for (int64_t i = 0; i < n; ++i) first = f(first, in[i]);
        return *out = first, cudaSuccess;
    }
    template <class In, class Out> static cudaError_t Sum(void* storage, size_t& bytes, In in, Out out, int64_t n, cudaStream_t = nullptr, bool = false) {
        return Reduce(storage, bytes, in, out, n, cub::Sum(), std::decay_t<decltype(*out)>{});
    }
    template <class In, class Out> static cudaError_t Max(void* storage, size_t& bytes, In in, Out out, int64_t n, cudaStream_t = nullptr, bool = false) {
        return Reduce(storage, bytes, in, out, n, cub::Max(), std::numeric_limits<std::decay_t<decltype(*out)>>::lowest());
    }
    template <class In, class Out> static cudaError_t Min(void* storage, size_t& bytes, In in, Out out, int64_t n, cudaStream_t = nullptr, bool = false) {
        return Reduce(storage, bytes, in, out, n, cub::Min(), std::numeric_limits<std::decay_t<decltype(*out)>>::max());
    }
};

struct DeviceScan {
    template <class In, class Out, class F>
    static cudaError_t InclusiveScan(void* storage, size_t& bytes, In in, Out out, F f, int64_t n, cudaStream_t = nullptr, bool = false) {
        if (details::asks_for_size(storage, bytes)) return cudaSuccess;
        for (int64_t i = 0; i < n; ++i) out[i] = i == 0 ? in[0] : f(out[i - 1], in[i]);
        return cudaSuccess;
    }
    template <class In, class Out, class F, class T>
    static cudaError_t ExclusiveScan(void* storage, size_t& bytes, In in, Out out, F f, T first, int64_t n, cudaStream_t = nullptr, bool = false) {
        if (details::asks_for_size(storage, bytes)) return cudaSuccess;
        for (int64_t i = 0; i < n; ++i) {
            const auto next = f(first, in[i]);
            out[i] = first;
            first = next;
        }
        return cudaSuccess;
    }
    template <class In, class Out> static cudaError_t InclusiveSum(void* storage, size_t& bytes, In in, Out out, int64_t n, cudaStream_t = nullptr, bool = false) { return InclusiveScan(storage, bytes, in, out, cub::Sum(), n); }
    template <class In, class Out> static cudaError_t ExclusiveSum(void* storage, size_t& bytes, In in, Out out, int64_t n, cudaStream_t = nullptr, bool = false) {
        return ExclusiveScan(storage, bytes, in, out, cub::Sum(), std::decay_t<decltype(*in)>{}, n);
    }
};

namespace details {
// The bits of a key from `begin` to before `end`, once they order keys as unsigned numbers do: signed integers with their
// sign flipped, negative floats with every bit flipped (so a NaN stands beyond the infinity of its sign), and -0 as 0.
template <class K>
unsigned __int128 digits(const K& key, int begin, int end) {
    constexpr unsigned __int128 one = 1, sign = one << (8 * sizeof(K) - 1);
    unsigned __int128 bits = 0;
    memcpy(&bits, &key, sizeof(K));
    if constexpr (!std::is_integral_v<K> && sizeof(K) <= 8) {
        if (bits == sign) bits = 0;
        bits ^= (bits & sign) != 0 ? sign | (sign - 1) : sign;
    } else if constexpr (static_cast<K>(-1) < K{}) {
        bits ^= sign;
    }
    if (end < static_cast<int>(8 * sizeof(K))) bits &= (one << end) - 1;
    return bits >> begin;
}
// Equal keys stay in the order in which they came. Values of type NullType are none.
template <class K, class V>
void sort_pairs(const K* keys_in, K* keys_out, const V* values_in, V* values_out, int64_t n, int begin, int end, bool descending) {
    std::vector<int64_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        if (descending) std::swap(a, b);
        return digits(keys_in[a], begin, end) < digits(keys_in[b], begin, end);
    });
    std::vector<K> keys(keys_in, keys_in + n);
    for (int64_t i = 0; i < n; ++i) keys_out[i] = keys[order[i]];
    if constexpr (!std::is_same_v<V, NullType>) {
        std::vector<V> values(values_in, values_in + n);
        for (int64_t i = 0; i < n; ++i) values_out[i] = values[order[i]];
    }
}
}  // namespace details

// Each thread gives and gets N items of a block: those beside each other, or, striped, every (X * Y * Z)th.
template <class K, int X, int N, class V = NullType, int Bits = 4, bool Memoize = true, BlockScanAlgorithm A = BLOCK_SCAN_WARP_SCANS, int Banks = 0, int Y = 1, int Z = 1, int Arch = 0>
class BlockRadixSort {
    static constexpr int threads = X * Y * Z, count = threads * N;

public:
    struct TempStorage {
        details::Slots<K, count> keys;
        details::Slots<V, count> values;
    };
    explicit BlockRadixSort(TempStorage& storage) : storage_(storage) {}
    BlockRadixSort() : storage_(own()) {}
    void Sort(K (&keys)[N], int begin = 0, int end = 8 * sizeof(K)) { sort(keys, nullptr, begin, end, false, false); }
    void Sort(K (&keys)[N], V (&values)[N], int begin = 0, int end = 8 * sizeof(K)) { sort(keys, values, begin, end, false, false); }
    void SortDescending(K (&keys)[N], int begin = 0, int end = 8 * sizeof(K)) { sort(keys, nullptr, begin, end, true, false); }
    void SortDescending(K (&keys)[N], V (&values)[N], int begin = 0, int end = 8 * sizeof(K)) { sort(keys, values, begin, end, true, false); }
    void SortBlockedToStriped(K (&keys)[N], int begin = 0, int end = 8 * sizeof(K)) { sort(keys, nullptr, begin, end, false, true); }
    void SortBlockedToStriped(K (&keys)[N], V (&values)[N], int begin = 0, int end = 8 * sizeof(K)) { sort(keys, values, begin, end, false, true); }
    void SortDescendingBlockedToStriped(K (&keys)[N], int begin = 0, int end = 8 * sizeof(K)) { sort(keys, nullptr, begin, end, true, true); }
    void SortDescendingBlockedToStriped(K (&keys)[N], V (&values)[N], int begin = 0, int end = 8 * sizeof(K)) { sort(keys, values, begin, end, true, true); }

private:
    static TempStorage& own() {
        static thread_local TempStorage storage;
        return storage;
    }
    void sort(K* keys, V* values, int begin, int end, bool descending, bool striped) {
        const int thread = static_cast<int>(dice_cpu_thread()->linear);
        K* all = storage_.keys.items();
        V* with = storage_.values.items();
        for (int i = 0; i < N; ++i) {
            all[thread * N + i] = keys[i];
            if (values != nullptr) with[thread * N + i] = values[i];
        }
        __syncthreads();
        if (thread == 0 && values != nullptr) details::sort_pairs(all, all, with, with, count, begin, end, descending);
        if (thread == 0 && values == nullptr) details::sort_pairs<K, NullType>(all, all, nullptr, nullptr, count, begin, end, descending);
        __syncthreads();
        for (int i = 0; i < N; ++i) {
            const int place = striped ? i * threads + thread : thread * N + i;
            keys[i] = all[place];
            if (values != nullptr) values[i] = with[place];
        }
    }
    TempStorage& storage_;
};

// Two buffers that a sort may use in turn; the sorted items are in `Current()`.
template <class T>
struct DoubleBuffer {
    T* d_buffers[2] = {nullptr, nullptr};
    int selector = 0;
    DoubleBuffer() = default;
    DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
    T* Current() const { return d_buffers[selector]; }
    T* Alternate() const { return d_buffers[selector ^ 1]; }
};

struct DeviceRadixSort {
    template <class K, class V>
    static cudaError_t pairs(void* storage, size_t& bytes, const K* keys_in, K* keys_out, const V* values_in, V* values_out, int64_t n, int begin, int end, bool descending) {
        if (!details::asks_for_size(storage, bytes)) details::sort_pairs(keys_in, keys_out, values_in, values_out, n, begin, end, descending);
        return cudaSuccess;
    }
    template <class K, class V>
    static cudaError_t in_turn(void* storage, size_t& bytes, DoubleBuffer<K>& keys, DoubleBuffer<V>* values, int64_t n, int begin, int end, bool descending) {
        if (details::asks_for_size(storage, bytes)) return cudaSuccess;
        if (values != nullptr) details::sort_pairs(keys.Current(), keys.Alternate(), values->Current(), values->Alternate(), n, begin, end, descending);
        else details::sort_pairs<K, NullType>(keys.Current(), keys.Alternate(), nullptr, nullptr, n, begin, end, descending);
        keys.selector ^= 1;
        if (values != nullptr) values->selector ^= 1;
        return cudaSuccess;
    }
    template <class K, class V> static cudaError_t SortPairs(void* storage, size_t& bytes, DoubleBuffer<K>& keys, DoubleBuffer<V>& values, int64_t n, int begin = 0, int end = 8 * sizeof(K), cudaStream_t = nullptr, bool = false) {
        return in_turn(storage, bytes, keys, &values, n, begin, end, false);
    }
    template <class K, class V> static cudaError_t SortPairsDescending(void* storage, size_t& bytes, DoubleBuffer<K>& keys, DoubleBuffer<V>& values, int64_t n, int begin = 0, int end = 8 * sizeof(K), cudaStream_t = nullptr, bool = false) {
        return in_turn(storage, bytes, keys, &values, n, begin, end, true);
    }
    template <class K> static cudaError_t SortKeys(void* storage, size_t& bytes, DoubleBuffer<K>& keys, int64_t n, int begin = 0, int end = 8 * sizeof(K), cudaStream_t = nullptr, bool = false) {
        return in_turn<K, NullType>(storage, bytes, keys, nullptr, n, begin, end, false);
    }
    template <class K> static cudaError_t SortKeysDescending(void* storage, size_t& bytes, DoubleBuffer<K>& keys, int64_t n, int begin = 0, int end = 8 * sizeof(K), cudaStream_t = nullptr, bool = false) {
        return in_turn<K, NullType>(storage, bytes, keys, nullptr, n, begin, end, true);
    }
    template <class K, class V> static cudaError_t SortPairs(void* storage, size_t& bytes, const K* ki, K* ko, const V* vi, V* vo, int64_t n, int begin = 0, int end = 8 * sizeof(K), cudaStream_t = nullptr, bool = false) {
        return pairs(storage, bytes, ki, ko, vi, vo, n, begin, end, false);
    }
    template <class K, class V> static cudaError_t SortPairsDescending(void* storage, size_t& bytes, const K* ki, K* ko, const V* vi, V* vo, int64_t n, int begin = 0, int end = 8 * sizeof(K), cudaStream_t = nullptr, bool = false) {
        return pairs(storage, bytes, ki, ko, vi, vo, n, begin, end, true);
    }
    template <class K> static cudaError_t SortKeys(void* storage, size_t& bytes, const K* ki, K* ko, int64_t n, int begin = 0, int end = 8 * sizeof(K), cudaStream_t = nullptr, bool = false) {
        return pairs<K, NullType>(storage, bytes, ki, ko, nullptr, nullptr, n, begin, end, false);
    }
    template <class K> static cudaError_t SortKeysDescending(void* storage, size_t& bytes, const K* ki, K* ko, int64_t n, int begin = 0, int end = 8 * sizeof(K), cudaStream_t = nullptr, bool = false) {
        return pairs<K, NullType>(storage, bytes, ki, ko, nullptr, nullptr, n, begin, end, true);
    }
};

struct DeviceSegmentedReduce {
    template <class In, class Out, class B, class E, class F, class T>
    static cudaError_t Reduce(void* storage, size_t& bytes, In in, Out out, int64_t segments, B begins, E ends, F f, T first, cudaStream_t = nullptr, bool = false) {
        if (details::asks_for_size(storage, bytes)) return cudaSuccess;
        for (int64_t s = 0; s < segments; ++s) {
            T total = first;
            for (int64_t i = begins[s]; i < ends[s]; ++i) total = f(total, in[i]);
            out[s] = total;
        }
        return cudaSuccess;
    }
    template <class In, class Out, class B, class E>
    static cudaError_t Sum(void* storage, size_t& bytes, In in, Out out, int64_t segments, B begins, E ends, cudaStream_t = nullptr, bool = false) {
        return Reduce(storage, bytes, in, out, segments, begins, ends, cub::Sum(), std::decay_t<decltype(*out)>{});
    }
    template <class In, class Out, class B, class E>
    static cudaError_t Max(void* storage, size_t& bytes, In in, Out out, int64_t segments, B begins, E ends, cudaStream_t = nullptr, bool = false) {
        return Reduce(storage, bytes, in, out, segments, begins, ends, cub::Max(), std::numeric_limits<std::decay_t<decltype(*out)>>::lowest());
    }
};

}  // namespace cub

#pragma GCC visibility pop
