// Attention for a tile of few tokens, behind the product that gives queries, keys and values: norms and rotates the heads,
// writes keys and values to the cache, and attends block-causally to the tile's cache slot. One kernel does the work of
// `_store_heads`, `_attend` and `_combine` in kernels.py.
//
// The thread blocks of a cluster share the keys of one tile and one key head, and so do the warps of a block, 16 keys at a
// time. Queries are the first operand of the tensor cores. Each thread copies exactly what it needs into a ring buffer of its
// own, so no thread waits for another before the end. Of keys, as in small_product.cu, lane t takes dims 8t..8t+7 of every 32,
// so that one lane holds both dims that are rotated together. Of values, lane (g, t) takes dims 8g..8g+7 of every 64 for keys
// 2t, 2t+1, 2t+8 and 2t+9: the positions that mma.m16n8k16 gives it when column n of its product j stands for dim 8n + j.
// Keys in front of the tile are older than this step, so they are loaded before the previous kernel has ended. The tile's own
// keys are the first step of the last warps: they go from the product into the ring, and into the cache for later steps.
// The warps' partial results are added in shared memory and sent, in a fixed order, to the thread block that writes them.
//
// Macros: WARPS, DEPTH (steps of the ring), SPLITS (thread blocks of a cluster), TILES (of 16 rows: tokens times GROUP),
// DIM (a multiple of 64), TOKENS (most tokens of a tile), GROUP, HEADS, BLOCK_SIZE, SPAN, FIELDS.
// Dynamic shared memory: see `attention_shape` in cluster_attention.py. A tile ends with the end of a block of tokens, and has
// at most 16 * WARPS * SPLITS tokens.

#define KEYS 16
#define K_PARTS (DIM / 32)
#define V_PARTS (DIM / 64)
#define ITEMS (2 * K_PARTS + 4 * V_PARTS)  // pieces of 16 bytes that a thread copies per step
#define THREADS (WARPS * 32)
#define ROWS (TILES * 16)
#define WIDTH (DIM + 8)
#define HALF (DIM / 2)
#define KV_HEADS (HEADS / GROUP)
#define SHARERS (SPLITS * WARPS)
#define RING_BYTES (DEPTH * ITEMS * THREADS * 16)
#define SUMS_BYTES (WARPS * ROWS * WIDTH * 4)
#define PLACES ((ROWS * DIM / 4 + SPLITS * THREADS - 1) / (SPLITS * THREADS) * THREADS)  // groups of four dims per block
#define QUADS (DIM / 4)                               // groups of a row
#define FOUND_BYTES (SPLITS * (PLACES * 16 + PLACES / QUADS * 8))
#define NOTHING (-3e38f)  // below every score

#if SPLITS > 1
#define CLUSTER __cluster_dims__(SPLITS, 1, 1)
#define ARRIVE() arrive_at_cluster()
#define WAIT_FOR_ALL() wait_for_cluster()
#define SEND(place, block, value) send_to_block(place, block, value, came)
#define WAIT_FOR_SENT() wait_for_bytes(came)
#else
#define CLUSTER
#define ARRIVE() (void)0
#define WAIT_FOR_ALL() (void)0
#define SEND(place, block, value) (*(place) = (value))
#define WAIT_FOR_SENT() __syncthreads()
#endif

// exp(one maximum - the other maximum); 0 for NOTHING.
__device__ __forceinline__ float weight_of(float top, float peak) { return top == NOTHING ? 0.0f : __expf(top - peak); }

// RMS norm and rotation of a head, of which a lane holds dims 8t..8t+7 of every 32; all pointers are to its first dim.
__device__ __forceinline__ void turn_head(uint4 (&head)[K_PARTS], const bf16* norm, const float* cos, const float* sin,
                                          float eps) {
    float squares = 0;
#pragma unroll
    for (int c = 0; c < K_PARTS; ++c) {
        const unsigned both[4] = {head[c].x, head[c].y, head[c].z, head[c].w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float low = wide(both[i] & 0xffff), high = wide(both[i] >> 16);
            squares += low * low + high * high;
        }
    }
    squares += __shfl_xor_sync(0xffffffffu, squares, 1);
    squares += __shfl_xor_sync(0xffffffffu, squares, 2);
    const float scale = rsqrtf(squares / DIM + eps);
#pragma unroll
    for (int c = 0; c < K_PARTS / 2; ++c) {
        uint4 &left = head[c], &right = head[c + K_PARTS / 2];
        const uint4 left_norm = *reinterpret_cast<const uint4*>(norm + c * 32);
        const uint4 right_norm = *reinterpret_cast<const uint4*>(norm + HALF + c * 32);
        const float4 cos_low = *reinterpret_cast<const float4*>(cos + c * 32);
        const float4 cos_high = *reinterpret_cast<const float4*>(cos + c * 32 + 4);
        const float4 sin_low = *reinterpret_cast<const float4*>(sin + c * 32);
        const float4 sin_high = *reinterpret_cast<const float4*>(sin + c * 32 + 4);
        auto turn = [&](unsigned& a, unsigned& b, unsigned a_norm, unsigned b_norm, float cos0, float cos1, float sin0,
                        float sin1) {
            const float a0 = wide(a & 0xffff) * scale * wide(a_norm & 0xffff), a1 = wide(a >> 16) * scale * wide(a_norm >> 16);
            const float b0 = wide(b & 0xffff) * scale * wide(b_norm & 0xffff), b1 = wide(b >> 16) * scale * wide(b_norm >> 16);
            a = narrow(a0 * cos0 - b0 * sin0, a1 * cos1 - b1 * sin1);
            b = narrow(b0 * cos0 + a0 * sin0, b1 * cos1 + a1 * sin1);
        };
        turn(left.x, right.x, left_norm.x, right_norm.x, cos_low.x, cos_low.y, sin_low.x, sin_low.y);
        turn(left.y, right.y, left_norm.y, right_norm.y, cos_low.z, cos_low.w, sin_low.z, sin_low.w);
        turn(left.z, right.z, left_norm.z, right_norm.z, cos_high.x, cos_high.y, sin_high.x, sin_high.y);
        turn(left.w, right.w, left_norm.w, right_norm.w, cos_high.z, cos_high.w, sin_high.z, sin_high.w);
    }
}

extern "C" __global__ void CLUSTER __launch_bounds__(THREADS)
cluster_attention(const bf16* qkv, bf16* key_cache, bf16* value_cache, bf16* out, const bf16* q_norm, const bf16* k_norm,
                  const float* cos, const float* sin, const int* tiles, int slot_stride, int head_stride, float eps,
                  float scale) {
    uint4* const ring = shared_memory;                   // [DEPTH][ITEMS][THREADS]
    float* const sums = reinterpret_cast<float*>(ring);  // [WARPS][ROWS][WIDTH], when the ring is done with
    float4* const found = reinterpret_cast<float4*>(sums + SUMS_BYTES / 4);  // [SPLITS][PLACES], from other blocks
    float2* const found_by = reinterpret_cast<float2*>(found + SPLITS * PLACES);  // [SPLITS][rows]: their maximum and mass
    float* const tops = sums + (RING_BYTES > SUMS_BYTES + FOUND_BYTES ? RING_BYTES : SUMS_BYTES + FOUND_BYTES) / 4;
    float *const masses = tops + WARPS * ROWS, *const top_of = masses + WARPS * ROWS;  // [WARPS][ROWS] both, [ROWS]
    float *const cosines = top_of + ROWS, *const sines = cosines + TOKENS * HALF;  // [TOKENS][HALF] each
    bf16 *const norms = reinterpret_cast<bf16*>(sines + TOKENS * HALF);            // [2][DIM], of queries and keys
    auto* const came = reinterpret_cast<unsigned long long*>(norms + 2 * DIM);

    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, g = lane / 4, t = lane % 4;
    const int rank = blockIdx.x % SPLITS, pair = blockIdx.x / SPLITS, kv_head = pair % (HEADS / GROUP);
    // Tiles are older than the kernel before this one.
    const int* const tile = tiles + pair / (HEADS / GROUP) * FIELDS;
    const int start = tile[1], first_row = tile[2], count = tile[3], second_row = tile[4];
    if (count == 0) {  // the same for all blocks of the cluster
        WAIT_FOR_PREVIOUS();
        return;
    }
    const int places = count * GROUP * QUADS;
    if (SPLITS > 1 && thread == 0) {
        int own = 0;  // places that this block writes
        for (int from = rank * THREADS; from < places; from += SPLITS * THREADS) own += min(THREADS, places - from);
        expect_bytes(came, SPLITS * (own * 16 + own / QUADS * 8));
    }
    const long long base = (long long)tile[0] * slot_stride + (long long)kv_head * head_stride;
    const int fresh = (count + KEYS - 1) / KEYS, old = (start + KEYS - 1) / KEYS;  // steps
    const int first = rank * WARPS + warp;
    const bool is_fresh = first >= SHARERS - fresh;  // whether its first step has keys of the tile itself
    const int behind = old + fresh - SHARERS - first;
    const int turns = (is_fresh || first < old) + (behind > 0 ? (behind - 1) / SHARERS + 1 : 0);
    const unsigned target = address_of(ring + thread);
    auto low_of = [&](int turn) {
        return turn > 0   ? (turn * SHARERS + first - fresh) * KEYS
               : is_fresh ? start + (first - SHARERS + fresh) * KEYS
                          : first * KEYS;
    };
    auto load = [&](int turn) {
        const unsigned slot = target + turn % DEPTH * ITEMS * THREADS * 16;
        const int low = low_of(turn);
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            const bf16* const from = key_cache + base + (long long)min(low + n * 8 + g, start - 1) * DIM + t * 8;
#pragma unroll
            for (int c = 0; c < K_PARTS; ++c) copy_ahead(slot + (n * K_PARTS + c) * THREADS * 16, from + c * 32);
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const int key = min(low + 2 * t + k % 2 + k / 2 * 8, start - 1);
            const bf16* const from = value_cache + base + (long long)key * DIM + g * 8;
#pragma unroll
            for (int c = 0; c < V_PARTS; ++c)
                copy_ahead(slot + (2 * K_PARTS + k * V_PARTS + c) * THREADS * 16, from + c * 64);
        }
    };
    // The tables are older than this step, too.
    auto copy = [&](void* to, const void* from, int bytes) {
        for (int place = thread * 16; place < bytes; place += THREADS * 16)
            copy_ahead(address_of(to) + place, reinterpret_cast<const bf16*>(from) + place / 2);
    };
    copy(cosines, cos + (long long)start * HALF, count * HALF * 4);
    copy(sines, sin + (long long)start * HALF, count * HALF * 4);
    copy(norms, q_norm, DIM * 2);
    copy(norms + DIM, k_norm, DIM * 2);
    COMMIT_COPIES();
#pragma unroll
    for (int d = 0; d < DEPTH - 1; ++d) {
        if (d < turns && (d > 0 || !is_fresh)) load(d);
        COMMIT_COPIES();
    }
    WAIT_FOR_COPIES(DEPTH - 1);
    __syncthreads();  // the tables are loaded
    WAIT_FOR_PREVIOUS();

    auto source = [&](int token, int head) {
        const int row = token < SPAN ? first_row + token : second_row + token - SPAN;
        return qkv + ((long long)row * (HEADS + 2 * KV_HEADS) + head) * DIM;
    };
    auto load_head = [&](uint4 (&into)[K_PARTS], int token, int head) {
        const bf16* const from = source(token, head) + t * 8;
#pragma unroll
        for (int c = 0; c < K_PARTS; ++c) into[c] = *reinterpret_cast<const uint4*>(from + c * 32);
    };
    auto turn_at = [&](uint4 (&head)[K_PARTS], const bf16* norm, int token) {
        turn_head(head, norm + t * 8, cosines + token * HALF + t * 8, sines + token * HALF + t * 8, eps);
    };

    const int own = (first - SHARERS + fresh) * KEYS;  // the first of the tile's keys that are this warp's
    uint4 own_key[2][K_PARTS], own_value[4][V_PARTS];
    if (is_fresh) {
#pragma unroll
        for (int n = 0; n < 2; ++n) load_head(own_key[n], min(own + n * 8 + g, count - 1), HEADS + kv_head);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const int token = min(own + 2 * t + k % 2 + k / 2 * 8, count - 1);
            const bf16* const from = source(token, HEADS + KV_HEADS + kv_head) + g * 8;
#pragma unroll
            for (int c = 0; c < V_PARTS; ++c) own_value[k][c] = *reinterpret_cast<const uint4*>(from + c * 64);
        }
    }
    uint4 q[TILES][2][K_PARTS];
    int end[TILES][2];
#pragma unroll
    for (int m = 0; m < TILES; ++m)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int place = m * 16 + h * 8 + g, token = place / GROUP;
            end[m][h] = token < count ? ((start + token) / BLOCK_SIZE + 1) * BLOCK_SIZE : 0;  // 0 where there is no token
            load_head(q[m][h], min(token, count - 1), kv_head * GROUP + place % GROUP);
        }
#pragma unroll
    for (int m = 0; m < TILES; ++m)
#pragma unroll
        for (int h = 0; h < 2; ++h) turn_at(q[m][h], norms, min((m * 16 + h * 8 + g) / GROUP, count - 1));
    if (is_fresh) {
        uint4* const slot = ring + thread;
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            const int token = own + n * 8 + g;
            turn_at(own_key[n], norms + DIM, min(token, count - 1));
            bf16* const to = key_cache + base + (long long)(start + token) * DIM + t * 8;
#pragma unroll
            for (int c = 0; c < K_PARTS; ++c) {
                slot[(n * K_PARTS + c) * THREADS] = own_key[n][c];
                if (token < count) *reinterpret_cast<uint4*>(to + c * 32) = own_key[n][c];
            }
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const int token = own + 2 * t + k % 2 + k / 2 * 8;
            bf16* const to = value_cache + base + (long long)(start + token) * DIM + g * 8;
#pragma unroll
            for (int c = 0; c < V_PARTS; ++c) {
                slot[(2 * K_PARTS + k * V_PARTS + c) * THREADS] = own_value[k][c];
                if (token < count) *reinterpret_cast<uint4*>(to + c * 64) = own_value[k][c];
            }
        }
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
        const int limit = turn > 0 || !is_fresh ? start : start + count;  // end of the keys of this step
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
                        const bool seen = low_of(turn) + n * 8 + 2 * t + i < min(end[m][h], limit);
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
    ARRIVE();  // this thread needs the ring no more
#pragma unroll
    for (int m = 0; m < TILES; ++m)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            mass[m][h] += __shfl_xor_sync(0xffffffffu, mass[m][h], 1);
            mass[m][h] += __shfl_xor_sync(0xffffffffu, mass[m][h], 2);
            if (t == 0) tops[warp * ROWS + m * 16 + h * 8 + g] = top[m][h];
        }
    LET_NEXT_START();  // not earlier: the next kernel's loads would get ahead of this kernel's
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
    WAIT_FOR_ALL();  // no thread needs the ring any more
    for (int place = thread; place < places; place += THREADS) {
        const int row = place / QUADS, at = row * WIDTH + place % QUADS * 4;
        float4 value = *reinterpret_cast<float4*>(sums + at);
        float whole = masses[row];
#pragma unroll
        for (int w = 1; w < WARPS; ++w) {
            const float4 more = *reinterpret_cast<float4*>(sums + w * ROWS * WIDTH + at);
            value.x += more.x, value.y += more.y, value.z += more.z, value.w += more.w;
            whole += masses[w * ROWS + row];
        }
        const int to = rank * PLACES + place / (SPLITS * THREADS) * THREADS + thread, block = place / THREADS % SPLITS;
        SEND(found + to, block, value);
        if (place % QUADS == 0) SEND(found_by + to / QUADS, block, make_float2(top_of[row], whole));
    }
    WAIT_FOR_SENT();
    for (int place = rank * THREADS + thread; place < places; place += SPLITS * THREADS) {
        const int row = place / QUADS, inner = place % QUADS * 4, token = row / GROUP;
        const int at = place / (SPLITS * THREADS) * THREADS + thread;
        float peak = NOTHING, whole = 0;
        float4 value = make_float4(0, 0, 0, 0);
#pragma unroll
        for (int block = 0; block < SPLITS; ++block) peak = fmaxf(peak, found_by[(block * PLACES + at) / QUADS].x);
#pragma unroll
        for (int block = 0; block < SPLITS; ++block) {
            const float2 by = found_by[(block * PLACES + at) / QUADS];
            const float4 part = found[block * PLACES + at];
            const float weight = weight_of(by.x, peak);
            value.x += weight * part.x, value.y += weight * part.y, value.z += weight * part.z, value.w += weight * part.w;
            whole += weight * by.y;
        }
        const int to = token < SPAN ? first_row + token : second_row + token - SPAN;
        *reinterpret_cast<uint2*>(out + ((long long)to * HEADS + kv_head * GROUP + row % GROUP) * DIM + inner) =
            make_uint2(narrow(value.x / whole, value.y / whole), narrow(value.z / whole, value.w / whole));
    }
}
