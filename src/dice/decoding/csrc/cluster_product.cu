// rms_norm(x) @ w.T (+ residual), or silu(gate) * up of it, for 16 to 64 rows: still bound by reading w once.
//
// Tensor cores with w as the first operand, as in small_product.cu: each thread has a ring in shared memory for the weights
// that it alone needs, and lane t takes k = 8t..8t+7 of every 32 as the places that mma.m16n8k16 gives it in two products.
// The warps of a block have columns of their own and share x, which is too much for each to read by itself: it lies in the
// ring in the order of the fragments, one barrier a step. Blocks of a cluster share the depth, so that a matrix with few
// columns keeps every processor busy; their sums meet in shared memory, in a fixed order, and nothing passes through
// global memory. The norm is linear but for one factor a row, which is applied to the sums: a thread weighs what it copied,
// always of the same rows, and adds up the squares.
//
// Set when compiled: WARPS, TILES (of 16 columns a warp), ROWS (a multiple of 8; ROWS / 4 a multiple of WARPS), DEPTH (steps of
// the ring), SPLITS (blocks of a cluster), GATED, RESIDUAL, NORM (0 or 1), LET_GO (as in small_product.cu).
// Dynamic shared memory: see `cluster_product` in products.py.

#define STEP 64
#define HALVES 2  // of a step: 32 deep each
#define PARTS (TILES * (1 + GATED))
#define GROUPS (ROWS / 8)
#define THREADS (WARPS * 32)
#define COLUMNS (WARPS * TILES * 16)
#define CHUNKS (HALVES * GROUPS / WARPS)  // 16 bytes of x that a thread copies a step
#define W_RING (PARTS * 2 * HALVES * THREADS)
#define SLOT (W_RING + CHUNKS * THREADS)
#define WIDTH (COLUMNS + 4)  // so that lanes write sums to different banks

#if SPLITS > 1
#define CLUSTER __cluster_dims__(SPLITS, 1, 1)
#else
#define CLUSTER
#endif

extern "C" __global__ void CLUSTER __launch_bounds__(THREADS)
cluster_product(const bf16* x, const bf16* w, bf16* out, const bf16* residual, const bf16* norm, float eps, int rows,
                int columns, int depth) {
    uint4* const ring = shared_memory;                  // [DEPTH][SLOT]
    uint4* const weights_of_norm = ring + DEPTH * SLOT;  // [steps * STEP / 8]
    const unsigned target = address_of(ring + threadIdx.x);
    float* const sums = reinterpret_cast<float*>(ring);  // [1 + GATED][ROWS][WIDTH], when the ring is done with

    if (LET_GO == 0) LET_NEXT_START();
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, g = lane / 4, t = lane % 4;
    const int rank = blockIdx.x % SPLITS, first = blockIdx.x / SPLITS * COLUMNS;
    const int all = depth / STEP, span = (all + SPLITS - 1) / SPLITS, begin = rank * span;
    const int steps = max(0, min(span, all - begin));
    float* const squares = reinterpret_cast<float*>(weights_of_norm + span * STEP / 8);  // [HALVES * GROUPS][8]

    const bf16 *low[PARTS], *high[PARTS], *input[CHUNKS];
    bool there[CHUNKS];
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
        const int column = first + (warp * TILES + p % TILES) * 16 + g;
        const long long half = p < TILES ? 0 : columns, from = (long long)begin * STEP + t * 8;
        low[p] = w + (half + min(column, columns - 1)) * depth + from;
        high[p] = w + (half + min(column + 8, columns - 1)) * depth + from;
    }
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
        const int place = c * WARPS + warp, row = place % GROUPS * 8 + g;
        there[c] = row < rows;
        input[c] = x + (there[c] ? (long long)row * depth + begin * STEP + place / GROUPS * 32 + t * 8 : 0);
    }
    auto load_weights = [&](int step) {
        const unsigned slot = target + step % DEPTH * SLOT * 16;
#pragma unroll
        for (int p = 0; p < PARTS; ++p)
#pragma unroll
            for (int s = 0; s < HALVES; ++s) {
                copy_ahead(slot + ((p * 2) * HALVES + s) * THREADS * 16, low[p] + step * STEP + s * 32);
                copy_ahead(slot + ((p * 2 + 1) * HALVES + s) * THREADS * 16, high[p] + step * STEP + s * 32);
            }
    };
    auto load_inputs = [&](int step) {
        const unsigned slot = target + (step % DEPTH * SLOT + W_RING) * 16;
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c)
            copy_ahead_or_zero(slot + c * THREADS * 16, input[c] + step * STEP, there[c]);
    };

#pragma unroll
    for (int d = 0; d < DEPTH - 1; ++d) {
        if (d < steps) load_weights(d);
        COMMIT_COPIES();
    }
    if (NORM) {
        const uint4* const from = reinterpret_cast<const uint4*>(norm + begin * STEP);
        for (int i = thread; i < steps * STEP / 8; i += THREADS) weights_of_norm[i] = from[i];
        __syncthreads();
    }
    // Weights do not depend on the kernel before this one; all else does.
    WAIT_FOR_PREVIOUS();
#pragma unroll
    for (int d = 0; d < DEPTH - 1; ++d) {
        if (d < steps) load_inputs(d);
        COMMIT_COPIES();
    }

    float sum[PARTS][GROUPS][4] = {}, square[CHUNKS] = {};
    for (int step = 0; step < steps; ++step) {
        if (LET_GO == 1 && step + DEPTH > steps) LET_NEXT_START();
        const uint4* const slot = ring + step % DEPTH * SLOT;
        WAIT_FOR_COPIES(DEPTH - 2);
        if (NORM) {
#pragma unroll
            for (int c = 0; c < CHUNKS; ++c) {
                uint4& own = ring[step % DEPTH * SLOT + W_RING + c * THREADS + thread];
                const uint4 weight = weights_of_norm[(step * STEP + (c * WARPS + warp) / GROUPS * 32) / 8 + t];
                uint4 value = own;
                value.x = weigh(value.x, weight.x, square[c]);
                value.y = weigh(value.y, weight.y, square[c]);
                value.z = weigh(value.z, weight.z, square[c]);
                value.w = weigh(value.w, weight.w, square[c]);
                own = value;
            }
        }
        __syncthreads();  // x of this step is there for all, and nobody needs the slot that is filled now
        if (step + DEPTH - 1 < steps) {
            load_weights(step + DEPTH - 1);
            load_inputs(step + DEPTH - 1);
        }
        COMMIT_COPIES();
#pragma unroll
        for (int s = 0; s < HALVES; ++s) {
            uint4 l[PARTS], h[PARTS];
#pragma unroll
            for (int p = 0; p < PARTS; ++p) {
                l[p] = slot[((p * 2) * HALVES + s) * THREADS + thread];
                h[p] = slot[((p * 2 + 1) * HALVES + s) * THREADS + thread];
            }
#pragma unroll
            for (int n = 0; n < GROUPS; ++n) {
                const uint4 b = slot[W_RING + (s * GROUPS + n) * 32 + lane];
#pragma unroll
                for (int p = 0; p < PARTS; ++p) {
                    multiply(sum[p][n], l[p].x, h[p].x, l[p].y, h[p].y, b.x, b.y);
                    multiply(sum[p][n], l[p].z, h[p].z, l[p].w, h[p].w, b.z, b.w);
                }
            }
        }
    }
    if (LET_GO == 2) LET_NEXT_START();
    __syncthreads();

#pragma unroll
    for (int p = 0; p < PARTS; ++p)
#pragma unroll
        for (int n = 0; n < GROUPS; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) {  // column g (+ 8 for i > 1) of the tile, row 2t (+ 1 for odd i) of the group
                const int column = (warp * TILES + p % TILES) * 16 + g + i / 2 * 8;
                sums[(p / TILES * ROWS + n * 8 + 2 * t + i % 2) * WIDTH + column] = sum[p][n][i];
            }
    if (NORM) {
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) {
            square[c] += __shfl_xor_sync(0xffffffffu, square[c], 1);
            square[c] += __shfl_xor_sync(0xffffffffu, square[c], 2);
            if (t == 0) squares[(c * WARPS + warp) * 8 + g] = square[c];
        }
    }
#if SPLITS > 1
    meet_cluster();
#define SHARED_BY(block, place) of_block(&(place), block)
#else
    __syncthreads();
#define SHARED_BY(block, place) (place)
#endif

    for (int place = rank * THREADS + thread; place < rows * COLUMNS; place += SPLITS * THREADS) {
        const int inner = place % COLUMNS, row = place / COLUMNS, column = first + inner;
        if (column >= columns) continue;
        float value = 0, up = 0, total = 0;
#pragma unroll
        for (int block = 0; block < SPLITS; ++block) {
            value += SHARED_BY(block, sums[row * WIDTH + inner]);
            if (GATED) up += SHARED_BY(block, sums[(ROWS + row) * WIDTH + inner]);
            if (NORM)
#pragma unroll
                for (int s = 0; s < HALVES; ++s) total += SHARED_BY(block, squares[s * ROWS + row]);
        }
        if (NORM) {
            const float scale = rsqrtf(total / depth + eps);
            value *= scale;
            up *= scale;
        }
        if (GATED) value = value / (1 + __expf(-value)) * up;
        const long long target = (long long)row * columns + column;
        if (RESIDUAL) value += wide(residual[target]);
        out[target] = (bf16)narrow(value, 0);
    }
#if SPLITS > 1
    meet_cluster();  // nobody leaves while others read its sums
#endif
}
