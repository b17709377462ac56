// x @ w.T (+ residual), or silu(gate) * up of it, for few rows: bound by reading w once.
//
// Tensor cores with w as the first operand, so that 8 rows of x are the narrow side. A lane loads 16 bytes of a row of w,
// straight to registers: 4 lanes read 64 bytes of it. The order of summation over k is free, so lane t takes k = 8t..8t+7
// of a step of 32 as the places that mma.m16n8k16 gives it in two products; x is read the same way.
// The warps of a block share k; their sums meet in shared memory.
//
// Set when compiled: WARPS, TILES (of 16 columns per block), ROWS (a multiple of 8), DEPTH (steps loaded ahead),
// GATED, RESIDUAL (0 or 1).

typedef unsigned short bf16;  // NVRTC brings no headers

#if __CUDA_ARCH__ >= 900
#define LET_NEXT_START() asm volatile("griddepcontrol.launch_dependents;")
#define WAIT_FOR_PREVIOUS() asm volatile("griddepcontrol.wait;" ::: "memory")
#else
#define LET_NEXT_START()
#define WAIT_FOR_PREVIOUS()
#endif

#define PARTS (TILES * (1 + GATED))
#define GROUPS (ROWS / 8)
#define STEP 32

struct Weights {
    uint4 low[PARTS], high[PARTS];  // rows g and g + 8 of each tile
};

struct Inputs {
    uint4 row[GROUPS];
};

__device__ __forceinline__ uint4 load_once(const bf16* p) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}

__device__ __forceinline__ void multiply(float (&sum)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                         unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ __forceinline__ float wide(unsigned value) { return __uint_as_float(value << 16); }

__device__ __forceinline__ unsigned narrow(float low, float high) {
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

extern "C" __global__ void __launch_bounds__(WARPS * 32)
small_product(const bf16* x, const bf16* w, bf16* out, const bf16* residual, int rows, int columns, int depth) {
    __shared__ float sums[WARPS][PARTS][GROUPS][32][4];

    LET_NEXT_START();
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int first = blockIdx.x * TILES * 16;
    const int steps = depth / STEP, turns = (steps + WARPS - 1) / WARPS;

    const bf16 *low[PARTS], *high[PARTS];
#pragma unroll
    for (int p = 0; p < PARTS; ++p) {
        const int column = first + p % TILES * 16 + g;
        const long long half = p < TILES ? 0 : columns;
        low[p] = w + (half + min(column, columns - 1)) * depth + t * 8;
        high[p] = w + (half + min(column + 8, columns - 1)) * depth + t * 8;
    }

    auto load_weights = [&](Weights& into, int turn) {
        const int step = turn * WARPS + warp;
        if (step < steps) {
#pragma unroll
            for (int p = 0; p < PARTS; ++p) {
                into.low[p] = load_once(low[p] + step * STEP);
                into.high[p] = load_once(high[p] + step * STEP);
            }
        }
    };
    auto load_inputs = [&](Inputs& into, int turn) {
        const int step = turn * WARPS + warp;
#pragma unroll
        for (int n = 0; n < GROUPS; ++n) {
            const int row = n * 8 + g;
            into.row[n] = row < rows && step < steps
                ? *reinterpret_cast<const uint4*>(x + (long long)row * depth + step * STEP + t * 8)
                : make_uint4(0, 0, 0, 0);
        }
    };

    Weights weights[DEPTH];
    Inputs inputs[DEPTH];
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) load_weights(weights[d], d);
    // Weights do not depend on the kernel before this one; all else does.
    WAIT_FOR_PREVIOUS();
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) load_inputs(inputs[d], d);

    float sum[PARTS][GROUPS][4] = {};
    for (int begin = 0; begin < turns; begin += DEPTH) {
#pragma unroll
        for (int d = 0; d < DEPTH; ++d) {
            const int turn = begin + d, step = turn * WARPS + warp;
            if (step < steps) {
#pragma unroll
                for (int n = 0; n < GROUPS; ++n) {
                    const uint4 b = inputs[d].row[n];
#pragma unroll
                    for (int p = 0; p < PARTS; ++p) {
                        const uint4 l = weights[d].low[p], h = weights[d].high[p];
                        multiply(sum[p][n], l.x, h.x, l.y, h.y, b.x, b.y);
                        multiply(sum[p][n], l.z, h.z, l.w, h.w, b.z, b.w);
                    }
                }
            }
            load_weights(weights[d], turn + DEPTH);
            load_inputs(inputs[d], turn + DEPTH);
        }
    }

#pragma unroll
    for (int n = 0; n < GROUPS; ++n)
#pragma unroll
        for (int p = 0; p < PARTS; ++p)
#pragma unroll
            for (int i = 0; i < 4; ++i) sums[warp][p][n][lane][i] = sum[p][n][i];
    __syncthreads();

    // Place (lane, i) of a tile is column g (+ 8 for i > 1) and row 2t (+ 1 for odd i).
    for (int place = threadIdx.x; place < TILES * 16 * ROWS; place += WARPS * 32) {
        const int inner = place % 16, tile = place / 16 % TILES, row = place / (16 * TILES);
        const int column = first + tile * 16 + inner;
        if (row >= rows || column >= columns) continue;
        const int from = inner % 8 * 4 + row % 8 / 2, i = inner / 8 * 2 + row % 2, n = row / 8;
        float value = 0, up = 0;
#pragma unroll
        for (int v = 0; v < WARPS; ++v) {
            value += sums[v][tile][n][from][i];
            if (GATED) up += sums[v][TILES * GATED + tile][n][from][i];
        }
        if (GATED) value = value / (1 + __expf(-value)) * up;
        const long long target = (long long)row * columns + column;
        if (RESIDUAL) value += wide(residual[target]);
        out[target] = (bf16)narrow(value, 0);
    }
}
