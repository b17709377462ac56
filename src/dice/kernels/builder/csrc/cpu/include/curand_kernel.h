// cuRAND's device interface. Philox4_32_10 is the published generator (Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", 2011); XORWOW (Marsaglia, "Xorshift RNGs", 2003) and MRG32k3a are seeded in our own way, so their numbers
// have the right distribution but not cuRAND's values.
#pragma once

#include "cuda_runtime_api.h"

#pragma GCC visibility push(hidden)

struct curandStatePhilox4_32_10 {
    uint4 counter, output;
    uint2 key;
    unsigned used;
    bool has_normal;
    float normal;
};
struct curandStateXORWOW {
    unsigned d, v[5];
    bool has_normal;
    float normal;
};
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
typedef curandStateXORWOW curandStateXORWOW_t;
typedef curandStateXORWOW curandStateMRG32k3a;
typedef curandStateXORWOW curandStateMRG32k3a_t;
typedef curandStateXORWOW curandState;
typedef curandStateXORWOW curandState_t;

namespace dice_cpu {

DICE_CPU_INLINE uint4 philox(uint4 c, uint2 k) {
    for (int round = 0; round < 10; ++round) {
        const unsigned long long a = 0xD2511F53ull * c.x, b = 0xCD9E8D57ull * c.z;
        c = {static_cast<unsigned>(b >> 32) ^ c.y ^ k.x, static_cast<unsigned>(b), static_cast<unsigned>(a >> 32) ^ c.w ^ k.y, static_cast<unsigned>(a)};
        k.x += 0x9E3779B9u;
        k.y += 0xBB67AE85u;
    }
    return c;
}
DICE_CPU_INLINE void advance(uint4& c, unsigned long long n) {
    const unsigned long long low = (static_cast<unsigned long long>(c.y) << 32 | c.x), sum = low + n;
    c.x = static_cast<unsigned>(sum), c.y = static_cast<unsigned>(sum >> 32);
    if (sum < low && ++c.z == 0) ++c.w;
}
DICE_CPU_INLINE unsigned long long mixed(unsigned long long x) {  // splitmix64
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}
DICE_CPU_INLINE float2 box_muller(unsigned a, unsigned b) {
    const float u = a * 0x1p-32f + 0x1p-33f, v = (b * 0x1p-32f + 0x1p-33f) * 6.283185307f, s = sqrtf(-2.0f * logf(u));
    return {s * sinf(v), s * cosf(v)};
}

}  // namespace dice_cpu

DICE_CPU_INLINE void skipahead(unsigned long long n, curandStatePhilox4_32_10* state) {
    const unsigned long long total = state->used + n;
    dice_cpu::advance(state->counter, total / 4);
    state->used = static_cast<unsigned>(total % 4);
    state->output = dice_cpu::philox(state->counter, state->key);
}
DICE_CPU_INLINE void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset, curandStatePhilox4_32_10* state) {
    *state = {{0, 0, static_cast<unsigned>(sequence), static_cast<unsigned>(sequence >> 32)}, {}, {static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32)}, 0, false, 0};
    skipahead(offset, state);
}
DICE_CPU_INLINE unsigned curand(curandStatePhilox4_32_10* state) {
    const unsigned values[] = {state->output.x, state->output.y, state->output.z, state->output.w}, value = values[state->used];
    skipahead(1, state);
    return value;
}
DICE_CPU_INLINE uint4 curand4(curandStatePhilox4_32_10* state) {
    uint4 result;
    result.x = curand(state), result.y = curand(state), result.z = curand(state), result.w = curand(state);
    return result;
}
DICE_CPU_INLINE unsigned curand(curandStateXORWOW* state) {
    const unsigned t = state->v[0] ^ (state->v[0] >> 2);
    for (int i = 0; i < 4; ++i) state->v[i] = state->v[i + 1];
    state->v[4] = (state->v[4] ^ (state->v[4] << 4)) ^ (t ^ (t << 1));
    return state->v[4] + (state->d += 362437);
}
DICE_CPU_INLINE void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset, curandStateXORWOW* state) {
    unsigned long long x = dice_cpu::mixed(seed) ^ dice_cpu::mixed(~sequence);
    for (unsigned& word : state->v) word = static_cast<unsigned>(x = dice_cpu::mixed(x)) | 1;
    state->d = static_cast<unsigned>(dice_cpu::mixed(x));
    state->has_normal = false;
    for (unsigned long long i = 0; i < offset && i < 65536; ++i) curand(state);
}
DICE_CPU_INLINE void skipahead(unsigned long long n, curandStateXORWOW* state) {
    for (unsigned long long i = 0; i < n && i < 65536; ++i) curand(state);
}

#define DICE_CPU_CURAND(State)                                                                                              \
    DICE_CPU_INLINE float curand_uniform(State* state) { return fminf(curand(state) * 0x1p-32f + 0x1p-33f, 1.0f); }         \
    DICE_CPU_INLINE double curand_uniform_double(State* state) {                                                            \
        const unsigned a = curand(state), b = curand(state);                                                                \
        return ((static_cast<unsigned long long>(a) << 21) ^ b) * 0x1p-53 + 0x1p-54;                                        \
    }                                                                                                                       \
    DICE_CPU_INLINE float2 curand_normal2(State* state) {                                                                   \
        const unsigned a = curand(state), b = curand(state);                                                                \
        return dice_cpu::box_muller(a, b);                                                                                  \
    }                                                                                                                       \
    DICE_CPU_INLINE float curand_normal(State* state) {                                                                     \
        if (state->has_normal) return state->has_normal = false, state->normal;                                             \
        const float2 pair = curand_normal2(state);                                                                          \
        state->has_normal = true, state->normal = pair.y;                                                                   \
        return pair.x;                                                                                                      \
    }                                                                                                                       \
    DICE_CPU_INLINE double curand_normal_double(State* state) { return curand_normal(state); }                              \
    DICE_CPU_INLINE float curand_log_normal(State* state, float mean, float deviation) { return expf(mean + deviation * curand_normal(state)); }
DICE_CPU_CURAND(curandStatePhilox4_32_10)
DICE_CPU_CURAND(curandStateXORWOW)
#undef DICE_CPU_CURAND
DICE_CPU_INLINE float4 curand_uniform4(curandStatePhilox4_32_10* state) {
    float4 r;
    r.x = curand_uniform(state), r.y = curand_uniform(state), r.z = curand_uniform(state), r.w = curand_uniform(state);
    return r;
}
DICE_CPU_INLINE float4 curand_normal4(curandStatePhilox4_32_10* state) {
    const float2 a = curand_normal2(state), b = curand_normal2(state);
    return {a.x, a.y, b.x, b.y};
}

#pragma GCC visibility pop
