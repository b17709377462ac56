// Weights on their way to the L2 cache before they can be used; nobody waits for them.

// The first `size` bytes (a multiple of 16) of each of `rows` rows, `stride` bytes apart. The lanes of all blocks' warps share
// the rows: lane 0 of every warp first, since a warp asks for one row after the other.
__device__ __forceinline__ void fetch_rows(const bf16* from, int rows, int stride, int size, int warps) {
    const int place = threadIdx.x % 32 * warps + threadIdx.x / 32;
    if (size == 0) return;
    for (int row = place * gridDim.x + blockIdx.x; row < rows; row += 32 * warps * gridDim.x)
        fetch((const char*)from + (long long)row * stride, size);
}
