// Thrust's algorithms as those of the standard library: device memory is host memory.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "../cuda_runtime_api.h"

#define THRUST_VERSION 300000

#pragma GCC visibility push(hidden)

namespace thrust {

struct Policy {
    template <class T> Policy on(T&&) const { return {}; }
    template <class T> Policy operator()(T&&) const { return {}; }
};
static constexpr Policy device, host, seq;
namespace cuda { static constexpr Policy par, par_nosync; }
namespace system::cuda { using thrust::cuda::par; }

template <class T> using device_ptr = T*;
template <class T> T* device_pointer_cast(T* p) { return p; }
template <class T> T* raw_pointer_cast(T* p) { return p; }
template <class T> T* raw_pointer_cast(const T* p) { return const_cast<T*>(p); }
template <class T> struct device_vector : std::vector<T> {
    using std::vector<T>::vector;
    using std::vector<T>::operator=;
    template <class V, class = decltype(std::declval<const V&>().begin())>  // no number: that is a size
    device_vector(const V& other) : std::vector<T>(other.begin(), other.end()) {}
    device_vector(const std::vector<T>& other) : std::vector<T>(other) {}
};
template <class T> using host_vector = std::vector<T>;
template <class It> auto raw_pointer_cast(It it) -> decltype(&*it) { return &*it; }

template <class T = void> using plus = std::plus<T>;
template <class T = void> using minus = std::minus<T>;
template <class T = void> using multiplies = std::multiplies<T>;
template <class T = void> using divides = std::divides<T>;
template <class T = void> using negate = std::negate<T>;
template <class T = void> using less = std::less<T>;
template <class T = void> using greater = std::greater<T>;
template <class T = void> using equal_to = std::equal_to<T>;
template <class T = void> struct maximum { template <class A> A operator()(const A& a, const A& b) const { return a < b ? b : a; } };
template <class T = void> struct minimum { template <class A> A operator()(const A& a, const A& b) const { return b < a ? b : a; } };
template <class T = void> struct identity { const T& operator()(const T& a) const { return a; } };
template <class T = void> struct square { T operator()(const T& a) const { return a * a; } };
using std::make_pair;
using std::make_tuple;
using std::pair;
using std::swap;
using std::tuple;

template <class T>
struct counting_iterator {
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = const T*;
    using reference = T;
    using iterator_category = std::random_access_iterator_tag;
    T at;
    explicit counting_iterator(T x = T()) : at(x) {}
    T operator*() const { return at; }
    T operator[](difference_type n) const { return static_cast<T>(at + n); }
    counting_iterator& operator++() { return ++at, *this; }
    counting_iterator operator++(int) { return counting_iterator(at++); }
    counting_iterator& operator--() { return --at, *this; }
    counting_iterator& operator+=(difference_type n) { return at += static_cast<T>(n), *this; }
    counting_iterator operator+(difference_type n) const { return counting_iterator(static_cast<T>(at + n)); }
    counting_iterator operator-(difference_type n) const { return counting_iterator(static_cast<T>(at - n)); }
    difference_type operator-(const counting_iterator& o) const { return static_cast<difference_type>(at) - static_cast<difference_type>(o.at); }
    bool operator==(const counting_iterator& o) const { return at == o.at; }
    bool operator!=(const counting_iterator& o) const { return at != o.at; }
    bool operator<(const counting_iterator& o) const { return at < o.at; }
};
template <class T> counting_iterator<T> make_counting_iterator(T x) { return counting_iterator<T>(x); }
template <class It, class F>
struct transform_iterator {
    using value_type = std::decay_t<decltype(std::declval<F>()(*std::declval<It>()))>;
    using difference_type = std::ptrdiff_t;
    using pointer = const value_type*;
    using reference = value_type;
    using iterator_category = std::random_access_iterator_tag;
    It at;
    F f;
    value_type operator*() const { return f(*at); }
    value_type operator[](difference_type n) const { return f(at[n]); }
    transform_iterator& operator++() { return ++at, *this; }
    transform_iterator operator++(int) { auto old = *this; ++at; return old; }
    transform_iterator operator+(difference_type n) const { return {at + n, f}; }
    difference_type operator-(const transform_iterator& o) const { return at - o.at; }
    bool operator==(const transform_iterator& o) const { return at == o.at; }
    bool operator!=(const transform_iterator& o) const { return !(at == o.at); }
};
template <class It, class F> transform_iterator<It, F> make_transform_iterator(It it, F f) { return {it, f}; }

// Each algorithm with and without an execution policy.
#define DICE_CPU_THRUST(name, call)                                                                       \
    template <class... A> auto name(A&&... a) -> decltype(call(std::forward<A>(a)...)) { return call(std::forward<A>(a)...); } \
    template <class... A> auto name(const Policy&, A&&... a) -> decltype(call(std::forward<A>(a)...)) { return call(std::forward<A>(a)...); }

namespace details {
template <class It> using Value = typename std::iterator_traits<It>::value_type;
template <class It> Value<It> reduce(It first, It last) { return std::accumulate(first, last, Value<It>{}); }
template <class It, class T> T reduce(It first, It last, T start) { return std::accumulate(first, last, start); }
template <class It, class T, class F> T reduce(It first, It last, T start, F f) { return std::accumulate(first, last, start, f); }
template <class It, class U, class T, class F> T transform_reduce(It first, It last, U u, T start, F f) {
    for (; first != last; ++first) start = f(start, u(*first));
    return start;
}
template <class It, class Out> Out exclusive_scan(It first, It last, Out out) { return std::exclusive_scan(first, last, out, Value<It>{}); }
template <class It, class Out, class T> Out exclusive_scan(It first, It last, Out out, T start) { return std::exclusive_scan(first, last, out, start); }
template <class It, class Out, class T, class F> Out exclusive_scan(It first, It last, Out out, T start, F f) { return std::exclusive_scan(first, last, out, start, f); }
template <class It> void sequence(It first, It last) { std::iota(first, last, Value<It>{}); }
template <class It, class T> void sequence(It first, It last, T start) { std::iota(first, last, start); }
template <class It, class T> void sequence(It first, It last, T start, T step) {
    for (; first != last; ++first, start += step) *first = start;
}
template <class K, class V, class Less> void sort_by_key(K keys, K last, V values, Less less) {
    const auto n = static_cast<size_t>(last - keys);
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return less(keys[a], keys[b]); });
    const std::vector<Value<K>> k(keys, last);
    const std::vector<Value<V>> v(values, values + n);
    for (size_t i = 0; i < n; ++i) keys[i] = k[order[i]], values[i] = v[order[i]];
}
template <class K, class V> void sort_by_key(K keys, K last, V values) { sort_by_key(keys, last, values, std::less<>{}); }
template <class It, class Map, class Out> Out gather(Map first, Map last, It from, Out out) {
    for (; first != last; ++first, ++out) *out = from[*first];
    return out;
}
template <class It, class Map, class Out> void scatter(It first, It last, Map map, Out out) {
    for (; first != last; ++first, ++map) out[*map] = *first;
}
}  // namespace details

DICE_CPU_THRUST(sort, std::sort)
DICE_CPU_THRUST(stable_sort, std::stable_sort)
DICE_CPU_THRUST(transform, std::transform)
DICE_CPU_THRUST(fill, std::fill)
DICE_CPU_THRUST(fill_n, std::fill_n)
DICE_CPU_THRUST(copy, std::copy)
DICE_CPU_THRUST(copy_n, std::copy_n)
DICE_CPU_THRUST(copy_if, std::copy_if)
DICE_CPU_THRUST(for_each, std::for_each)
DICE_CPU_THRUST(for_each_n, std::for_each_n)
DICE_CPU_THRUST(max_element, std::max_element)
DICE_CPU_THRUST(min_element, std::min_element)
DICE_CPU_THRUST(count, std::count)
DICE_CPU_THRUST(count_if, std::count_if)
DICE_CPU_THRUST(unique, std::unique)
DICE_CPU_THRUST(remove_if, std::remove_if)
DICE_CPU_THRUST(replace, std::replace)
DICE_CPU_THRUST(replace_if, std::replace_if)
DICE_CPU_THRUST(reverse, std::reverse)
DICE_CPU_THRUST(inner_product, std::inner_product)
DICE_CPU_THRUST(inclusive_scan, std::inclusive_scan)
DICE_CPU_THRUST(adjacent_difference, std::adjacent_difference)
DICE_CPU_THRUST(lower_bound, std::lower_bound)
DICE_CPU_THRUST(upper_bound, std::upper_bound)
DICE_CPU_THRUST(all_of, std::all_of)
DICE_CPU_THRUST(any_of, std::any_of)
DICE_CPU_THRUST(reduce, details::reduce)
DICE_CPU_THRUST(transform_reduce, details::transform_reduce)
DICE_CPU_THRUST(exclusive_scan, details::exclusive_scan)
DICE_CPU_THRUST(sequence, details::sequence)
DICE_CPU_THRUST(sort_by_key, details::sort_by_key)
DICE_CPU_THRUST(stable_sort_by_key, details::sort_by_key)
DICE_CPU_THRUST(gather, details::gather)
DICE_CPU_THRUST(scatter, details::scatter)
#undef DICE_CPU_THRUST

}  // namespace thrust

#pragma GCC visibility pop
