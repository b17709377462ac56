// rms_norm(x) @ w.T (+ residual), or silu(gate) * up of it, for few rows. Its lower bound is the time to read w once.
//
// Tensor cores with w as the first operand, so that the 8 rows of x are the narrow side. A lane copies 16 bytes of a row of w
// at a time (4 lanes copy 64 bytes of it) into a ring buffer in shared memory that only this thread uses: no thread waits for
// another, and many loads can be in flight without registers or L1. Sums over k can be taken in any order, so lane t uses
// k = 8t..8t+7 of a step of 32 for the positions that mma.m16n8k16 gives it in two products; x is read the same way.
// The warps of a block share k and add their sums in shared memory. The norm is linear except for one factor per row, which
// is applied to the sums: x times the norm's weights goes into the product, and the squares of x are added beside it.
//
// The next kernel of a chain loads ahead where it has room beside this one: a processor has 228 KB of shared memory and 65,536
// registers, and a thread takes no more registers than allow BLOCKS thread blocks of this kernel at once.
//
// Macros: WARPS, TILES (of 16 columns per block), DEPTH (steps loaded ahead), BLOCKS, GATED, RESIDUAL, NORM (0 or 1),
// LET_GO (the next kernel may start when the loads of this many steps are left; 0: when all are in flight). At most 8 rows,
// and 2^32 elements of w. Dynamic shared memory: see `few_rows_bytes` in few_rows_product.py.

#define ROWS 8
#define PARTS (TILES * (1 + GATED))
#define STEP 32
#define PLACES ((TILES * 16 * ROWS + WARPS * 32 - 1) / (WARPS * 32))  // elements that a thread writes
#define RING_BYTES (DEPTH * 2 * PARTS * WARPS * 32 * 16)

struct Inputs {
    uint4 row, norm;
};

extern "C" __global__ void __launch_bounds__(WARPS * 32, BLOCKS)
small_product(const bf16* x, const bf16* w, bf16* out, const bf16* residual, const bf16* norm, float eps, int rows,
              int columns, int depth) {
    uint4* const ring = shared_memory;  // [DEPTH][2 * PARTS][threads]
    float* const sums = reinterpret_cast<float*>(ring) + RING_BYTES / 4;  // [WARPS][PARTS][32][4]
    float* const squares = sums + WARPS * PARTS * 128;                    // [WARPS][ROWS]

    const int threads = WARPS * 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int first = blockIdx.x * TILES * 16;
    const int steps = depth / STEP, turns = (steps + WARPS - 1) / WARPS;
    const int let_go = max(turns - DEPTH - LET_GO, 0);
    const uint4* mine = ring + threadIdx.x;
    const unsigned target = address_of(mine);

    unsigned low[PARTS], high[PARTS];  // elements of w: fewer registers than addresses
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
        const int column = first + p % TILES * 16 + g;
        const int half = p < TILES ? 0 : columns;
        low[p] = (unsigned)(half + min(column, columns - 1)) * depth + t * 8;
        high[p] = (unsigned)(half + min(column + 8, columns - 1)) * depth + t * 8;
    }

    auto load_weights = [&](int slot, int turn) {
        const int step = turn * WARPS + warp;
        if (step < steps) {
#pragma unroll
            for (int p = 0; p < PARTS; ++p) {
                const unsigned to = target + (slot * PARTS + p) * 2 * threads * 16;
                copy_ahead(to, w + (low[p] + step * STEP));
                copy_ahead(to + threads * 16, w + (high[p] + step * STEP));
            }
        }
        COMMIT_COPIES();  // one group per step, even an empty one
    };
    auto load_norm = [&](Inputs& into, int turn) {
        const int step = turn * WARPS + warp;
        if (NORM && step < steps) into.norm = *reinterpret_cast<const uint4*>(norm + step * STEP + t * 8);
    };
    auto load_rows = [&](Inputs& into, int turn) {
        const int step = turn * WARPS + warp;
        into.row = g < rows && step < steps ? *reinterpret_cast<const uint4*>(x + g * depth + step * STEP + t * 8)
                                            : make_uint4(0, 0, 0, 0);
    };

    Inputs inputs[DEPTH];
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) {
        load_weights(d, d);
        load_norm(inputs[d], d);
    }
    // Only the weights do not depend on the kernel before this one.
    WAIT_FOR_PREVIOUS();
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) load_rows(inputs[d], d);
    float added[PLACES];  // residuals of the elements that this thread will write
#pragma unroll
    for (int own = 0; own < PLACES; ++own) {
        const int place = own * threads + threadIdx.x, row = place / (16 * TILES);
        const int column = first + place / 16 % TILES * 16 + place % 16;
        const bool there = RESIDUAL && row < rows && column < columns;
        added[own] = there ? wide(residual[(long long)row * columns + column]) : 0.0f;
    }

    float sum[PARTS][4] = {}, square = 0;
    for (int begin = 0; begin < turns; begin += DEPTH) {
#pragma unroll
        for (int d = 0; d < DEPTH; ++d) {
            const int turn = begin + d, step = turn * WARPS + warp;
            if (turn == let_go) LET_NEXT_START();
            WAIT_FOR_COPIES(DEPTH - 1);
            if (step < steps) {
                uint4 b = inputs[d].row;
                if (NORM) {
                    const uint4 weight = inputs[d].norm;
                    b.x = weigh(b.x, weight.x, square);
                    b.y = weigh(b.y, weight.y, square);
                    b.z = weigh(b.z, weight.z, square);
                    b.w = weigh(b.w, weight.w, square);
                }
#pragma unroll
                for (int p = 0; p < PARTS; ++p) {
                    const uint4 l = mine[((d * PARTS + p) * 2) * threads], h = mine[((d * PARTS + p) * 2 + 1) * threads];
                    multiply(sum[p], l.x, h.x, l.y, h.y, b.x, b.y);
                    multiply(sum[p], l.z, h.z, l.w, h.w, b.z, b.w);
                }
            }
            load_weights(d, turn + DEPTH);
            load_norm(inputs[d], turn + DEPTH);
            load_rows(inputs[d], turn + DEPTH);
        }
    }
    if (NORM) {
        square += __shfl_xor_sync(0xffffffffu, square, 1);
        square += __shfl_xor_sync(0xffffffffu, square, 2);
        if (t == 0) squares[warp * ROWS + g] = square;
    }
#pragma unroll
    for (int p = 0; p < PARTS; ++p)
        *reinterpret_cast<float4*>(sums + ((warp * PARTS + p) * 32 + lane) * 4) =
            make_float4(sum[p][0], sum[p][1], sum[p][2], sum[p][3]);
    __syncthreads();

    // Place (lane, i) of a tile is column g (+ 8 for i > 1) and row 2t (+ 1 for odd i).
#pragma unroll
    for (int own = 0; own < PLACES; ++own) {
        const int place = own * threads + threadIdx.x;
        const int inner = place % 16, tile = place / 16 % TILES, row = place / (16 * TILES);
        const int column = first + tile * 16 + inner;
        if (row >= rows || column >= columns) continue;
        const int from = inner % 8 * 4 + row / 2, i = inner / 8 * 2 + row % 2;
        float value = 0, up = 0, total = 0;
#pragma unroll
        for (int v = 0; v < WARPS; ++v) {
            value += sums[((v * PARTS + tile) * 32 + from) * 4 + i];
            if (GATED) up += sums[((v * PARTS + TILES + tile) * 32 + from) * 4 + i];
            if (NORM) total += squares[v * ROWS + row];
        }
        if (NORM) {
            const float scale = rsqrtf(total / depth + eps);
            value *= scale;
            up *= scale;
        }
        if (GATED) value = value / (1 + __expf(-value)) * up;
        out[(long long)row * columns + column] = (bf16)narrow(value + added[own], 0);
    }
}
