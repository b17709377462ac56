// PTX instructions for the kernels of this folder; their sources begin with this text, because NVRTC has no headers.

typedef unsigned short bf16;

#if __CUDA_ARCH__ >= 900
#define LET_NEXT_START() asm volatile("griddepcontrol.launch_dependents;")
#define WAIT_FOR_PREVIOUS() asm volatile("griddepcontrol.wait;" ::: "memory")
#else
#define LET_NEXT_START() (void)0
#define WAIT_FOR_PREVIOUS()
#endif

#define COMMIT_COPIES() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT_FOR_COPIES(pending) asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory")

extern __shared__ uint4 shared_memory[];

__device__ __forceinline__ float wide(unsigned value) { return __uint_as_float(value << 16); }

__device__ __forceinline__ unsigned narrow(float low, float high) {
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

__device__ __forceinline__ unsigned address_of(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }

// Start to copy 16 bytes from global to shared memory.
__device__ __forceinline__ void copy_ahead(unsigned to, const bf16* from) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

// Tensor cores: sum [16, 8] += a [16, 16] b [16, 8], computed by a warp.
__device__ __forceinline__ void multiply(float (&sum)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                         unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// Two values of x: returns them times two weights of the norm, and adds up their squares.
__device__ __forceinline__ unsigned weigh(unsigned x, unsigned weight, float& squares) {
    const float low = wide(x & 0xffff), high = wide(x >> 16);
    squares += low * low + high * high;
    return narrow(low * wide(weight & 0xffff), high * wide(weight >> 16));
}

#if __CUDA_ARCH__ >= 900
// When a thread has waited, all threads of the cluster have arrived. What they wrote before may not be visible to the others
// yet: the barrier does not wait for it.
__device__ __forceinline__ void arrive_at_cluster() { asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory"); }
__device__ __forceinline__ void wait_for_cluster() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }

// The same place of shared memory in another block of the cluster.
__device__ __forceinline__ unsigned place_in(const void* place, unsigned block) {
    unsigned there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address_of(place)), "r"(block));
    return there;
}

// Copy to that place; a barrier there counts the bytes, and a thread that has waited for them sees them. One thread sets the
// barrier up before it arrives at the cluster.
__device__ __forceinline__ void expect_bytes(unsigned long long* barrier, unsigned bytes) {
    const unsigned place = address_of(barrier);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(place) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(place), "r"(bytes) : "memory");
}
__device__ __forceinline__ void send_to_block(const float4* place, unsigned block, float4 value, const void* barrier) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];"
                 ::"r"(place_in(place, block)), "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w),
                 "r"(place_in(barrier, block)) : "memory");
}
__device__ __forceinline__ void send_to_block(const float2* place, unsigned block, float2 value, const void* barrier) {
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];"
                 ::"r"(place_in(place, block)), "f"(value.x), "f"(value.y), "r"(place_in(barrier, block)) : "memory");
}
__device__ __forceinline__ void wait_for_bytes(const unsigned long long* barrier) {
    unsigned done = 0;
    while (!done)
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;\nselp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done) : "r"(address_of(barrier)) : "memory");
}
#endif
