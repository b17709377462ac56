// Block-causal attention of a tile of few tokens over its slot of the cache, `_attend` and `_combine` of kernels.py in one.
//
// Blocks of a cluster share the keys of a tile and a head of keys, and so do their warps, 16 keys at a time. Queries are the
// first operand of the tensor cores. A thread copies exactly what it needs into a ring of its own, so nothing is
// synchronised before the end: of keys as in small_product.cu, lane t takes dims 8t..8t+7 of every 32; of values, lane (g, t)
// takes dims 8g..8g+7 of every 64 of keys 2t, 2t+1, 2t+8 and 2t+9, which are the places that mma.m16n8k16 gives it when
// column n of its product j stands for dim 8n + j. Keys older than this step are loaded before the kernel in front has
// ended. What warps and blocks found is merged through shared memory, in a fixed order.
//
// Set when compiled: WARPS, DEPTH (steps of the ring), SPLITS (blocks of a cluster), TILES (of 16 rows: tokens times GROUP),
// DIM (a multiple of 64), GROUP, HEADS, BLOCK_SIZE, SPAN, FIELDS, EARLY (whether the next kernel may start at once).
// Dynamic shared memory: see `attention_shape` in cluster_attention.py.

#define KEYS 16
#define K_PARTS (DIM / 32)
#define V_PARTS (DIM / 64)
#define ITEMS (2 * K_PARTS + 4 * V_PARTS)  // 16 bytes each that a thread copies a step
#define THREADS (WARPS * 32)
#define ROWS (TILES * 16)
#define WIDTH (DIM + 8)
#define RING_BYTES (DEPTH * ITEMS * THREADS * 16)
#define SUMS_BYTES (WARPS * ROWS * WIDTH * 4)
#define NOTHING (-3e38f)  // below every score

#if SPLITS > 1
#define CLUSTER __cluster_dims__(SPLITS, 1, 1)
#define SHARED_BY(block, place) of_block(&(place), block)
#define FOUR_SHARED_BY(block, place) four_of_block(&(place), block)
#else
#define CLUSTER
#define SHARED_BY(block, place) (place)
#define FOUR_SHARED_BY(block, place) (*reinterpret_cast<float4*>(&(place)))
#endif

// e to the power of what a maximum lies below another; nothing weighs nothing.
__device__ __forceinline__ float weight_of(float top, float peak) { return top == NOTHING ? 0.0f : __expf(top - peak); }

extern "C" __global__ void CLUSTER __launch_bounds__(THREADS)
cluster_attention(const bf16* query, const bf16* key_cache, const bf16* value_cache, bf16* out, const int* tiles,
                  int slot_stride, int head_stride, float scale) {
    uint4* const ring = shared_memory;                   // [DEPTH][ITEMS][THREADS]
    float* const sums = reinterpret_cast<float*>(ring);  // [WARPS][ROWS][WIDTH], when the ring is done with
    float* const tops = sums + (RING_BYTES > SUMS_BYTES ? RING_BYTES : SUMS_BYTES) / 4;  // [WARPS][ROWS]
    float *const masses = tops + WARPS * ROWS, *const top_of = masses + WARPS * ROWS, *const mass_of = top_of + ROWS;

    if (EARLY) LET_NEXT_START();
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, g = lane / 4, t = lane % 4;
    const int rank = blockIdx.x % SPLITS, pair = blockIdx.x / SPLITS, kv_head = pair % (HEADS / GROUP);
    // Tiles are older than the kernel before this one.
    const int* const tile = tiles + pair / (HEADS / GROUP) * FIELDS;
    const int start = tile[1], first_row = tile[2], count = tile[3], second_row = tile[4];
    if (count == 0) {  // the same for all blocks of the cluster
        WAIT_FOR_PREVIOUS();
        return;
    }
    const long long base = (long long)tile[0] * slot_stride + (long long)kv_head * head_stride;
    const int last = ((start + count - 1) / BLOCK_SIZE + 1) * BLOCK_SIZE, steps = (last + KEYS - 1) / KEYS;
    const int first = rank * WARPS + warp;  // step of this warp's first turn
    const int turns = first < steps ? (steps - 1 - first) / (SPLITS * WARPS) + 1 : 0;
    const unsigned target = address_of(ring + thread);

    auto low_of = [&](int turn) { return (turn * SPLITS * WARPS + first) * KEYS; };
    auto load = [&](int turn) {
        const unsigned slot = target + turn % DEPTH * ITEMS * THREADS * 16;
        const int low = low_of(turn);
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            const bf16* const from = key_cache + base + (long long)min(low + n * 8 + g, last - 1) * DIM + t * 8;
#pragma unroll
            for (int c = 0; c < K_PARTS; ++c) copy_ahead(slot + (n * K_PARTS + c) * THREADS * 16, from + c * 32);
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const int key = min(low + 2 * t + k % 2 + k / 2 * 8, last - 1);
            const bf16* const from = value_cache + base + (long long)key * DIM + g * 8;
#pragma unroll
            for (int c = 0; c < V_PARTS; ++c)
                copy_ahead(slot + (2 * K_PARTS + k * V_PARTS + c) * THREADS * 16, from + c * 64);
        }
    };
    // Written before this step: it writes from `start` on, and perhaps the block before that.
    auto is_old = [&](int turn) { return low_of(turn) + KEYS <= start - BLOCK_SIZE; };

#pragma unroll
    for (int d = 0; d < DEPTH - 1; ++d) {
        if (d < turns && is_old(d)) load(d);
        COMMIT_COPIES();
    }
    WAIT_FOR_PREVIOUS();
#pragma unroll
    for (int d = 0; d < DEPTH - 1; ++d) {
        if (d < turns && !is_old(d)) load(d);
        COMMIT_COPIES();
    }

    uint4 q[TILES][2][K_PARTS];
    int end[TILES][2];
#pragma unroll
    for (int m = 0; m < TILES; ++m)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int place = m * 16 + h * 8 + g, token = place / GROUP;
            const int row = token < SPAN ? first_row + token : second_row + token - SPAN;
            const bf16* const from = query + ((long long)row * HEADS + kv_head * GROUP + place % GROUP) * DIM + t * 8;
            end[m][h] = token < count ? ((start + token) / BLOCK_SIZE + 1) * BLOCK_SIZE : 0;
#pragma unroll
            for (int c = 0; c < K_PARTS; ++c)
                q[m][h][c] = token < count ? *reinterpret_cast<const uint4*>(from + c * 32) : make_uint4(0, 0, 0, 0);
        }

    float top[TILES][2], mass[TILES][2] = {}, total[TILES][V_PARTS * 8][4] = {};
#pragma unroll
    for (int m = 0; m < TILES; ++m) top[m][0] = top[m][1] = NOTHING;
    for (int turn = 0; turn < turns; ++turn) {
        const uint4* const slot = ring + turn % DEPTH * ITEMS * THREADS + thread;
        WAIT_FOR_COPIES(DEPTH - 2);
        if (turn + DEPTH - 1 < turns) load(turn + DEPTH - 1);
        COMMIT_COPIES();

        float score[TILES][2][4] = {};
#pragma unroll
        for (int n = 0; n < 2; ++n)
#pragma unroll
            for (int c = 0; c < K_PARTS; ++c) {
                const uint4 key = slot[(n * K_PARTS + c) * THREADS];
#pragma unroll
                for (int m = 0; m < TILES; ++m) {
                    const uint4 &l = q[m][0][c], &h = q[m][1][c];
                    multiply(score[m][n], l.x, h.x, l.y, h.y, key.x, key.y);
                    multiply(score[m][n], l.z, h.z, l.w, h.w, key.z, key.w);
                }
            }
        unsigned weights[TILES][4];
#pragma unroll
        for (int m = 0; m < TILES; ++m)
#pragma unroll
            for (int h = 0; h < 2; ++h) {  // row g (+ 8): keys 2t, 2t + 1, and those 8 behind
                float peak = top[m][h];
#pragma unroll
                for (int n = 0; n < 2; ++n)
#pragma unroll
                    for (int i = 0; i < 2; ++i) {
                        const bool seen = low_of(turn) + n * 8 + 2 * t + i < end[m][h];
                        float& value = score[m][n][h * 2 + i];
                        value = seen ? value * scale : NOTHING;
                        peak = fmaxf(peak, value);
                    }
                peak = fmaxf(peak, __shfl_xor_sync(0xffffffffu, peak, 1));
                peak = fmaxf(peak, __shfl_xor_sync(0xffffffffu, peak, 2));
                const float shrink = weight_of(top[m][h], peak);
                top[m][h] = peak;
                mass[m][h] *= shrink;
#pragma unroll
                for (int n = 0; n < 2; ++n) {
                    const float low = weight_of(score[m][n][h * 2], peak), high = weight_of(score[m][n][h * 2 + 1], peak);
                    mass[m][h] += low + high;
                    weights[m][n * 2 + h] = narrow(low, high);
                }
#pragma unroll
                for (int j = 0; j < V_PARTS * 8; ++j) {
                    total[m][j][h * 2] *= shrink;
                    total[m][j][h * 2 + 1] *= shrink;
                }
            }
#pragma unroll
        for (int c = 0; c < V_PARTS; ++c) {
            unsigned value[4][4];
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const uint4 found = slot[(2 * K_PARTS + k * V_PARTS + c) * THREADS];
                value[k][0] = found.x, value[k][1] = found.y, value[k][2] = found.z, value[k][3] = found.w;
            }
#pragma unroll
            for (int j = 0; j < 8; ++j) {  // one dim of two keys
                auto both = [&](unsigned a, unsigned b) {
                    return j % 2 ? a >> 16 | (b & 0xffff0000u) : (a & 0xffff) | b << 16;
                };
                const unsigned b0 = both(value[0][j / 2], value[1][j / 2]), b1 = both(value[2][j / 2], value[3][j / 2]);
#pragma unroll
                for (int m = 0; m < TILES; ++m)
                    multiply(total[m][c * 8 + j], weights[m][0], weights[m][1], weights[m][2], weights[m][3], b0, b1);
            }
        }
    }
#pragma unroll
    for (int m = 0; m < TILES; ++m)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            mass[m][h] += __shfl_xor_sync(0xffffffffu, mass[m][h], 1);
            mass[m][h] += __shfl_xor_sync(0xffffffffu, mass[m][h], 2);
            if (t == 0) tops[warp * ROWS + m * 16 + h * 8 + g] = top[m][h];
        }
    if (!EARLY) LET_NEXT_START();
    __syncthreads();
#pragma unroll
    for (int m = 0; m < TILES; ++m)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = m * 16 + h * 8 + g;
            float peak = NOTHING;
#pragma unroll
            for (int w = 0; w < WARPS; ++w) peak = fmaxf(peak, tops[w * ROWS + row]);
            const float weight = weight_of(top[m][h], peak);
            float* const to = sums + (warp * ROWS + row) * WIDTH + 16 * t;
#pragma unroll
            for (int c = 0; c < V_PARTS; ++c)
#pragma unroll
                for (int i = 0; i < 4; ++i) {  // column 2t + i / 2 of four products
                    float(*const part)[4] = &total[m][c * 8 + i % 2 * 4];
                    const int n = h * 2 + i / 2;
                    *reinterpret_cast<float4*>(to + c * 64 + i * 4) = make_float4(
                        part[0][n] * weight, part[1][n] * weight, part[2][n] * weight, part[3][n] * weight);
                }
            if (t == 0) {
                masses[warp * ROWS + row] = mass[m][h] * weight;
                if (warp == 0) top_of[row] = peak;
            }
        }
    __syncthreads();
    for (int place = thread; place < ROWS * DIM / 4; place += THREADS) {
        const int row = place / (DIM / 4), at = row * WIDTH + place % (DIM / 4) * 4;
        float4 value = *reinterpret_cast<float4*>(sums + at);
        float whole = masses[row];
#pragma unroll
        for (int w = 1; w < WARPS; ++w) {
            const float4 more = *reinterpret_cast<float4*>(sums + w * ROWS * WIDTH + at);
            value.x += more.x, value.y += more.y, value.z += more.z, value.w += more.w;
            whole += masses[w * ROWS + row];
        }
        *reinterpret_cast<float4*>(sums + at) = value;
        if (place % (DIM / 4) == 0) mass_of[row] = whole;
    }
#if SPLITS > 1
    meet_cluster();
#else
    __syncthreads();
#endif
    for (int place = rank * THREADS + thread; place < count * GROUP * DIM / 4; place += SPLITS * THREADS) {
        const int row = place / (DIM / 4), inner = place % (DIM / 4) * 4, token = row / GROUP;
        float peaks[SPLITS], wholes[SPLITS], peak = NOTHING, whole = 0;
        float4 parts[SPLITS], value = make_float4(0, 0, 0, 0);
#pragma unroll
        for (int block = 0; block < SPLITS; ++block) {
            peaks[block] = SHARED_BY(block, top_of[row]);
            wholes[block] = SHARED_BY(block, mass_of[row]);
            parts[block] = FOUR_SHARED_BY(block, sums[row * WIDTH + inner]);
        }
#pragma unroll
        for (int block = 0; block < SPLITS; ++block) peak = fmaxf(peak, peaks[block]);
#pragma unroll
        for (int block = 0; block < SPLITS; ++block) {
            const float weight = weight_of(peaks[block], peak);
            const float4& part = parts[block];
            value.x += weight * part.x, value.y += weight * part.y, value.z += weight * part.z, value.w += weight * part.w;
            whole += weight * wholes[block];
        }
        const int to = token < SPAN ? first_row + token : second_row + token - SPAN;
        *reinterpret_cast<uint2*>(out + ((long long)to * HEADS + kv_head * GROUP + row % GROUP) * DIM + inner) =
            make_uint2(narrow(value.x / whole, value.y / whole), narrow(value.z / whole, value.w / whole));
    }
#if SPLITS > 1
    meet_cluster();  // nobody leaves while others read its sums
#endif
}
