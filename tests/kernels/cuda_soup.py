"""CUDA text for tests of what must take any text: sources written for it, those with changes, and soups of tokens."""

from __future__ import annotations

from hypothesis import strategies as st

from dice.kernels.source.lexer import words

REDUCTION = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#define WARP 32  // lanes
#define CHECK(x) \
  TORCH_CHECK((x).is_cuda(), #x " must be on the GPU")

template <typename T, int BLOCK = 256>
__device__ __forceinline__ T block_sum(T value) {
  __shared__ T parts[BLOCK / WARP];
  for (int step = WARP / 2; step > 0; step >>= 1) value += __shfl_down_sync(0xffffffffu, value, step);
  if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = value;
  __syncthreads();
  return threadIdx.x < BLOCK / WARP ? parts[threadIdx.x] : T(0);
}

template <typename T>
__global__ void __launch_bounds__(256, 2) row_sums(const T* __restrict__ x, T* out, int columns) {
  T sum = 0;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += x[blockIdx.x * (long long)columns + i];
  sum = block_sum<T, 256>(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

torch::Tensor forward(torch::Tensor x) {
  CHECK(x);
  auto out = torch::empty({x.size(0)}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "row_sums", [&] {
    row_sums<scalar_t><<<dim3(x.size(0), 1), 256, 0, at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), static_cast<int>(x.size(1)));
  });
  return out;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward, "row sums; k<<<1, 2>>>(x)"); }
"""

TILES = r"""
namespace tiles {
namespace {
constexpr int N = 16;
__constant__ float weights[N] = {1.f, 2.f};
static int calls{0};
struct __align__(16) Tile {
  float value[N];
  Tile() : value{} { clear(); }
  __device__ void clear() { for (auto& v : value) { v = 0.f; } }
  friend Tile operator+(const Tile& a, const Tile&) noexcept { return a; }
};
enum class Mode : int { plain = 1 << 2, fast };
using Function = float (*)(float);
}  // namespace
template <> __device__ float value_of<float, (N > 2)>(const float (&row)[N]) { return row[0]; }
extern "C" __global__ void multiply(Tile tile, float* __restrict__ out, int n = 3) {
  extern __shared__ float buffer[];
#pragma unroll
  for (int i = 0; i < n; ++i) { out[i] = R"(}" )" == nullptr ? weights[i] : '}'; }
}
#if defined(DOUBLE)
typedef double real;
#else
typedef float real;
#endif
void run(float* out, cudaStream_t stream) {
  auto go = [=](int blocks) -> void { multiply<<<blocks, N, N * sizeof(real), stream>>>(Tile{}, out); };
  ++calls; go(4 >> 1);
}
}  // namespace tiles
"""

MACROS = r"""
#define ELEMENTWISE(name, expression)                      \
  __global__ void name(float* x, int n) {                  \
    int i = blockIdx.x * blockDim.x + threadIdx.x;         \
    if (i < n) { float v = x[i]; x[i] = (expression); }    \
  }
#define RUN(name, x, n) name<<<((n) + 255) / 256, 256>>>(x, n)
ELEMENTWISE(relu, v > 0 ? v : 0)
ELEMENTWISE(square, v * v)
void both(float* x, int n) {
  RUN(relu, x, n);
  RUN(square, x, n);
}
"""

SOURCES = (REDUCTION, TILES, MACROS)

_WORDS = words("""
    namespace template struct class enum union using typedef operator asm const static extern inline constexpr decltype
    noexcept requires concept auto void int f k return try public static_assert alignas __global__ __device__ __host__
    __shared__ __constant__ __launch_bounds__
    """)
_LINES = ("\\", "#if A", "#else", "#endif", "#define X x", "#define K(x) k<<<1, 2>>>(x)", "#include <a>")
TOKENS = (
    *"()[]{}<>;,:=*&~.\"'\\# \n",
    *("<<<", ">>>", "::", "->", "&&", "...", "//", "/*", "*/", 'R"(', ')"', '"C"', "1"),
    *(f"\n{line}\n" for line in _LINES),
    *(f" {word} " for word in sorted(_WORDS)),
)


@st.composite
def changed_sources(draw: st.DrawFn) -> str:
    """One of the sources with a few places cut out, doubled or written over."""
    text = draw(st.sampled_from(SOURCES))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 30)))
        between = draw(st.sampled_from([*TOKENS, "", text[start:end] * 2]))
        text = text[:start] + between + text[end:]
    return text


SOUPS = st.lists(st.sampled_from(TOKENS), max_size=50).map("".join)
ANY_TEXT = SOUPS | changed_sources() | st.text(max_size=40)
