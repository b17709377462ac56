"""Small extensions, each with one feature of CUDA C++ or of `load_inline`, and what PyTorch's own build says of it.

`BUILT` and `REFUSED`: name -> arguments of load_inline. The verdicts are those of PyTorch 2.11 with nvcc 13.0 and gcc 12
(`benchmarks/build_cost.py --samples` checks them anew).
"""

from __future__ import annotations

from typing import Any

_ADD = "out[i] = in[i] + 1.0f;"


def _kernel(
    body: str, head: str = "", launch: str = "k<<<(n + 255) / 256, 256>>>", includes: str = "", **more: Any
) -> Any:
    """A source with one kernel `k(const float* in, float* out, int n)` and a function `run` that launches it."""
    return {
        "cpp_sources": "torch::Tensor run(torch::Tensor x);",
        "cuda_sources": f"""
#include <torch/extension.h>
{includes}
{head}
__global__ void k(const float* in, float* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {{ {body} }}
}}
torch::Tensor run(torch::Tensor x) {{
    auto out = torch::empty_like(x);
    int n = x.numel();
    {launch}(x.data_ptr<float>(), out.data_ptr<float>(), n);
    return out;
}}
""",
        "functions": ["run"],
        **more,
    }


def _source(cuda: str, cpp: str = "torch::Tensor run(torch::Tensor x);", functions: Any = ("run",), **more: Any) -> Any:
    functions = list(functions) if isinstance(functions, tuple) else functions
    return {"cpp_sources": cpp, "cuda_sources": f"#include <torch/extension.h>\n{cuda}", "functions": functions, **more}


_RUN = """
torch::Tensor run(torch::Tensor x) {{
    auto out = torch::empty_like(x);
    int n = x.numel();
    {}
    return out;
}}
"""


def _run(body: str) -> str:
    return _RUN.format(body)


_POINTERS = "x.data_ptr<float>(), out.data_ptr<float>(), n"

BUILT: dict[str, dict[str, Any]] = {
    "plain": _kernel(_ADD),
    "one configuration value": _kernel(_ADD, launch="k<<<256>>>"),
    "template kernel, explicit type and value": _source(
        "template <typename T, int N> __global__ void k(const T* in, T* out, int n)"
        "{ int i = blockIdx.x * N + threadIdx.x; if (i < n) out[i] = in[i] * T(2); }"
        + _run(f"k<float, 128><<<(n + 127) / 128, 128>>>({_POINTERS});")
    ),
    "template kernel, deduced type": _source(
        "template <typename T> __global__ void k(const T* in, T* out, int n) { if (n) out[0] = in[0]; }"
        + _run(f"k<<<1, 1>>>({_POINTERS});")
    ),
    "AT_DISPATCH_FLOATING_TYPES": _source(
        "template <typename scalar_t> __global__ void k(const scalar_t* in, scalar_t* out, int n)"
        "{ int i = threadIdx.x; if (i < n) out[i] = in[i] * scalar_t(2); }"
        + _run(
            'AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "run", ([&] {'
            "k<scalar_t><<<1, 32>>>(x.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), n); }));"
        )
    ),
    "AT_DISPATCH with Half": _source(
        "template <typename scalar_t> __global__ void k(const scalar_t* in, scalar_t* out, int n)"
        "{ int i = threadIdx.x; if (i < n) out[i] = static_cast<scalar_t>(static_cast<float>(__ldg(in + i)) * 2.0f); }"
        + _run(
            'AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "run", ([&] {'
            "k<scalar_t><<<1, 32>>>(x.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), n); }));"
        )
    ),
    "packed accessor": _source(
        "template <typename T> __global__ void k(torch::PackedTensorAccessor32<T, 1, torch::RestrictPtrTraits> in,"
        " torch::PackedTensorAccessor32<T, 1, torch::RestrictPtrTraits> out)"
        "{ int i = threadIdx.x; if (i < in.size(0)) out[i] = in[i] + 1; }"
        + _run(
            "k<float><<<1, 32>>>(x.packed_accessor32<float, 1, torch::RestrictPtrTraits>(),"
            " out.packed_accessor32<float, 1, torch::RestrictPtrTraits>());"
        )
    ),
    "constant memory": _kernel(
        "out[i] = in[i] * weight[i % 4];",
        head="__constant__ float weight[4];",
        launch="float host[4] = {1, 2, 3, 4}; cudaMemcpyToSymbol(weight, host, sizeof(host)); k<<<1, 256>>>",
    ),
    "initialised device variables": _kernel(
        "out[i] = in[i] * table[i % 3] + ns::offset;",
        head="__device__ float table[] = {1.f, 2.f, 3.f}; namespace ns { __constant__ float offset = 0.5f; }",
    ),
    "dynamic shared memory": _kernel(
        "extern __shared__ float s[]; s[threadIdx.x] = in[i]; out[i] = s[threadIdx.x];",
        launch="k<<<(n + 255) / 256, 256, 256 * sizeof(float)>>>",
    ),
    "more than 48 KiB of shared memory": _kernel(
        "extern __shared__ float s[]; s[threadIdx.x] = in[i]; out[i] = s[threadIdx.x];",
        launch="cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536); k<<<1, 256, 65536>>>",
    ),
    "occupancy": _kernel(
        _ADD,
        launch="int grid, block; cudaOccupancyMaxPotentialBlockSize(&grid, &block, k, 0, 0); k<<<grid, block>>>",
    ),
    "cooperative groups": _kernel(
        "auto tile = cg::tiled_partition<32>(cg::this_thread_block()); float v = in[i];"
        " for (int d = 16; d > 0; d /= 2) v += tile.shfl_down(v, d); out[i] = v;",
        includes="#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;",
    ),
    "cooperative launch": _source(
        "#include <cooperative_groups.h>\n"
        "__global__ void k(const float* in, float* out, int n)"
        "{ if (n) out[0] = in[0]; cooperative_groups::this_grid().sync(); }"
        + _run(
            "const float* in = x.data_ptr<float>(); float* o = out.data_ptr<float>(); void* arguments[] = {&in, &o, &n};"
            "cudaLaunchCooperativeKernel((void*)k, dim3(1), dim3(32), arguments, 0, 0);"
        )
    ),
    "cub block reduction": _kernel(
        "typedef cub::BlockReduce<float, 256> Reduce; __shared__ typename Reduce::TempStorage t;"
        " float s = Reduce(t).Sum(in[i]); if (threadIdx.x == 0) out[blockIdx.x] = s;",
        includes="#include <cub/cub.cuh>",
    ),
    "thrust on the host side": _source(
        "#include <thrust/device_ptr.h>\n#include <thrust/reduce.h>\n#include <thrust/execution_policy.h>\n"
        "__global__ void k(float* out, float v) { out[0] = v; }"
        + _run(
            "auto p = thrust::device_pointer_cast(x.data_ptr<float>());"
            "float s = thrust::reduce(thrust::device, p, p + n); k<<<1, 1>>>(out.data_ptr<float>(), s);"
        )
    ),
    "wmma": _kernel(
        "wmma::fragment<wmma::accumulator, 16, 16, 16, float> f; wmma::fill_fragment(f, in[i]);"
        " wmma::store_matrix_sync(out, f, 16, wmma::mem_row_major);",
        includes="#include <mma.h>\nusing namespace nvcuda;",
    ),
    "half arithmetic by intrinsics": _kernel(
        "half h = __float2half(in[i]); out[i] = __half2float(__hadd(h, h));", includes="#include <cuda_fp16.h>"
    ),
    "half operators switched on": _kernel(
        "half h = __float2half(in[i]); out[i] = float(h * h);",
        includes="#include <cuda_fp16.h>",
        extra_cuda_cflags=["-U__CUDA_NO_HALF_OPERATORS__", "-U__CUDA_NO_HALF_CONVERSIONS__"],
    ),
    "bfloat16": _kernel(
        "__nv_bfloat16 b = __float2bfloat16(in[i]); out[i] = __bfloat162float(b);", includes="#include <cuda_bf16.h>"
    ),
    "curand": _kernel(
        "curandStatePhilox4_32_10_t s; curand_init(1, i, 0, &s); out[i] = in[i] + curand_uniform(&s);",
        includes="#include <curand_kernel.h>",
    ),
    "vector types": _kernel(
        "float4 v = reinterpret_cast<const float4*>(in)[i]; v.x += 1; reinterpret_cast<float4*>(out)[i] = v;"
    ),
    "inline PTX": _kernel('float v; asm volatile("add.f32 %0, %1, %1;" : "=f"(v) : "f"(in[i])); out[i] = v;'),
    "anonymous namespace": _source(
        "namespace { __global__ void k(const float* in, float* out, int n) { if (n) out[0] = in[0]; } }"
        + _run(f"k<<<1, 1>>>({_POINTERS});")
    ),
    "kernel in a namespace": _source(
        "namespace a { namespace b { __global__ void k(const float* in, float* out, int n) { if (n) out[0] = in[0]; } } }"
        + _run(f"a::b::k<<<1, 1>>>({_POINTERS});")
    ),
    "a parameter that hides CUDA's dim3": _source(
        "__global__ void k(const float* in, float* out, int dim3) { if (threadIdx.x < dim3) out[threadIdx.x] = in[0]; }"
        + _run(f"k<<<1, 1>>>({_POINTERS});")
    ),
    "static and extern C kernels": _source(
        "static __global__ void k1(const float* in, float* out, int n) { if (n) out[0] = in[0]; }\n"
        'extern "C" __global__ void k2(const float* in, float* out, int n) { if (n) out[1] = in[1]; }'
        + _run(f"k1<<<1, 1>>>({_POINTERS}); k2<<<1, 1>>>({_POINTERS});")
    ),
    "overloaded kernels": _source(
        "__global__ void k(const float* in, float* out, int n) { if (n) out[0] = in[0]; }\n"
        "__global__ void k(float* out, float v) { out[1] = v; }"
        + _run(f"k<<<1, 1>>>({_POINTERS}); k<<<1, 1>>>(out.data_ptr<float>(), 2.0f);")
    ),
    "kernel and host function of one name": _source(
        "__global__ void run(const float* in, float* out, int n) { if (n) out[0] = in[0]; }"
        + _run(f"run<<<1, 1>>>({_POINTERS});")
    ),
    "specialised kernel template": _source(
        "template <int N> __global__ void k(const float* in, float* out, int n) { out[0] = in[0] * N; }\n"
        "template <> __global__ void k<2>(const float* in, float* out, int n) { out[0] = in[0] + 2; }"
        + _run(f"k<1><<<1, 1>>>({_POINTERS}); k<2><<<1, 1>>>({_POINTERS});")
    ),
    "functor as template argument": _source(
        "struct Twice { __device__ float operator()(float v) const { return __fmul_rn(v, 2.0f); } };\n"
        "template <typename F> __global__ void k(const float* in, float* out, int n, F f) { if (n) out[0] = f(in[0]); }"
        + _run(f"k<<<1, 1>>>({_POINTERS}, Twice());")
    ),
    "device function as template argument": _source(
        "__device__ float twice(float v) { return v * 2; }\n"
        "typedef float (*Op)(float);\n"
        "template <Op op> __global__ void k(const float* in, float* out, int n) { if (n) out[0] = op(in[0]); }"
        + _run(f"k<twice><<<1, 1>>>({_POINTERS});")
    ),
    "struct argument": _source(
        "struct Shape { int a; long b; float c[3]; };\n"
        "__global__ void k(const float* in, float* out, Shape s) { out[s.a] = in[s.b] * s.c[1]; }"
        + _run("Shape s{0, 1, {1, 2, 3}}; k<<<1, 1>>>(x.data_ptr<float>(), out.data_ptr<float>(), s);")
    ),
    "kernel pointer": _source(
        "__global__ void k1(const float* in, float* out, int n) { out[0] = in[0]; }\n"
        "__global__ void k2(const float* in, float* out, int n) { out[0] = -in[0]; }"
        + _run(f"auto k = n > 3 ? &k1 : &k2; k<<<1, 1>>>({_POINTERS});")
    ),
    "kernel made by a macro": _source(
        "#define KERNEL(name, op) __global__ void name(const float* in, float* out, int n) { out[0] = in[0] op 2; }\n"
        "KERNEL(twice, *)\nKERNEL(more, +)" + _run(f"twice<<<1, 1>>>({_POINTERS}); more<<<1, 1>>>({_POINTERS});")
    ),
    "launch inside a macro": _source(
        "#define LAUNCH(k, n) \\\n    k<<<1, n>>>(x.data_ptr<float>(), \\\n        out.data_ptr<float>(), n)\n"
        "__global__ void k(const float* in, float* out, int n) { out[0] = in[0]; }" + _run("LAUNCH(k, n);")
    ),
    "launch bounds and defaults": _source(
        "__global__ void __launch_bounds__(256, 2) k(const float* __restrict__ in, float* __restrict__ out, int n = 7,"
        " float s = 1e-5f) { if (n) out[0] = in[0] + s; }"
        + _run("k<<<1, 256>>>(x.data_ptr<float>(), out.data_ptr<float>());")
    ),
    "host and device function": _source(
        "__host__ __device__ inline int blocks(int n) { return (n + 255) / 256; }\n"
        "__device__ __forceinline__ float twice(float v) { return v + v; }\n"
        "__global__ void k(const float* in, float* out, int n) { if (blocks(n) > 0) out[0] = twice(in[0]); }"
        + _run(f"k<<<blocks(n), 256>>>({_POINTERS});")
    ),
    "min and max on the host": _kernel(_ADD, launch="k<<<min((n + 255) / 256, 65535), max(32, min(n, 256))>>>"),
    "current stream": _kernel(
        _ADD,
        includes="#include <ATen/cuda/CUDAContext.h>\n#include <c10/cuda/CUDAGuard.h>",
        launch="const at::cuda::OptionalCUDAGuard guard(device_of(x));"
        " auto stream = at::cuda::getCurrentCUDAStream(); k<<<(n + 255) / 256, 256, 0, stream>>>",
    ),
    "error checks": _source(
        "#include <c10/cuda/CUDAException.h>\n"
        "#define CUDA_CHECK(e) do { cudaError_t err = (e); TORCH_CHECK(err == cudaSuccess, cudaGetErrorString(err)); }"
        " while (0)\n"
        "__global__ void k(const float* in, float* out, int n) { out[0] = in[0]; }"
        + _run(
            f"k<<<1, 1>>>({_POINTERS}); CUDA_CHECK(cudaPeekAtLastError()); C10_CUDA_KERNEL_LAUNCH_CHECK();"
            " cudaDeviceSynchronize();"
        )
    ),
    "cuBLAS": _source(
        "#include <cublas_v2.h>\n#include <ATen/cuda/CUDAContext.h>\n"
        "__global__ void k(float* out) { out[0] = 1; }"
        + _run(
            "float a = 1, b = 0; cublasSgemm(at::cuda::getCurrentCUDABlasHandle(), CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &a,"
            " x.data_ptr<float>(), 2, x.data_ptr<float>(), 2, &b, out.data_ptr<float>(), 2);"
            " k<<<1, 1>>>(out.data_ptr<float>());"
        ),
        extra_ldflags=["-lcublas"],
    ),
    "fast math and registers": _kernel(
        "out[i] = expf(in[i]) / sinf(in[i]);",
        extra_cuda_cflags=["-O3", "--use_fast_math", "-Xptxas", "-O3,-v", "--maxrregcount=64", "-lineinfo"],
    ),
    "optimised host code": _kernel(_ADD, extra_cflags=["-O3"], extra_cuda_cflags=["-O2"]),
    "macro from the flags": _kernel("out[i] = in[i] * FACTOR;", extra_cuda_cflags=["-DFACTOR=3"]),
    "architecture named": _kernel(_ADD, extra_cuda_cflags=["-gencode=arch=compute_90,code=sm_90"]),
    "two functions with docs": _source(
        "__global__ void k(const float* in, float* out, int n) { out[0] = in[0]; }"
        + _run(f"k<<<1, 1>>>({_POINTERS});")
        + "int64_t count(torch::Tensor x) { return x.numel(); }",
        cpp="torch::Tensor run(torch::Tensor x);\nint64_t count(torch::Tensor x);",
        functions={"run": "runs it", "count": "counts"},
    ),
    "wrapper in C++": _source(
        "__global__ void k(const float* in, float* out, int n) { out[0] = in[0]; }"
        + _run(f"k<<<1, 1>>>({_POINTERS});").replace("run(", "run_cuda("),
        cpp="#define CHECK(x) TORCH_CHECK(x.is_contiguous(), #x)\ntorch::Tensor run_cuda(torch::Tensor x);\n"
        "torch::Tensor run(torch::Tensor x) { CHECK(x); return run_cuda(x); }",
    ),
    "PYBIND11_MODULE by hand": _source(
        "__global__ void k(const float* in, float* out, int n) { out[0] = in[0]; }"
        + _run(f"k<<<1, 1>>>({_POINTERS});"),
        cpp="torch::Tensor run(torch::Tensor x);\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n"
        '  m.doc() = "a module";\n  m.def("run", &run, "runs", py::arg("x"));\n}',
        functions=None,
    ),
    "PYBIND11_MODULE with a lambda and a class": _source(
        "__global__ void k(const float* in, float* out, int n) { out[0] = in[0]; }"
        + _run(f"k<<<1, 1>>>({_POINTERS});"),
        cpp="torch::Tensor run(torch::Tensor x);\nstruct Box { int n; };\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n"
        '  pybind11::class_<Box>(m, "Box").def(pybind11::init<>()).def_readwrite("n", &Box::n);\n'
        '  m.def("run", [](torch::Tensor x) { return run(x); });\n}',
        functions=None,
    ),
    "module in the .cu": _source(
        "__global__ void k(const float* in, float* out, int n) { out[0] = in[0]; }"
        + _run(f"k<<<1, 1>>>({_POINTERS});")
        + 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run, "runs"); }',
        cpp="",
        functions=None,
    ),
    "indexing with slices": _kernel(
        _ADD, launch="auto y = x.index({torch::indexing::Slice(0, 2)}); n = y.numel(); k<<<1, 256>>>"
    ),
    "torch::nn::functional on the host": _kernel(_ADD, launch="x = torch::nn::functional::relu(x); k<<<1, 256>>>"),
    "device lambda": _source(
        "template <typename F> __global__ void k(F f, int n) { int i = threadIdx.x; if (i < n) f(i); }"
        + _run(
            "const float* in = x.data_ptr<float>(); float* o = out.data_ptr<float>();"
            " k<<<1, 32>>>([=] __device__ (int i) { o[i] = in[i]; }, n);"
        ),
        extra_cuda_cflags=["--extended-lambda"],
    ),
    "architecture macro": _kernel("\n#if __CUDA_ARCH__ >= 700\n out[i] = in[i];\n#else\n out[i] = 0;\n#endif\n"),
    "managed variable": _kernel("out[i] = in[i] + total;", head="__managed__ float total;"),
    "narrowing of a declared scalar": _kernel(_ADD, launch="long w = n; int m{w}; k<<<1, m>>>"),
    "half without its header": _kernel("half h = __float2half(in[i]); out[i] = __half2float(h);"),
    "launch bounds by PyTorch's macro": _source(
        "__global__ C10_LAUNCH_BOUNDS_1(1024) void k(const float* in, float* out, int n) { out[0] = in[0]; }"
        + _run(f"k<<<1, 1>>>({_POINTERS});")
    ),
    "launch bounds by an own macro": _source(
        "#define BOUNDS(n) __launch_bounds__(n)\n"
        "__global__ BOUNDS(256) void k(const float* in, float* out, int n) { out[0] = in[0]; }"
        + _run(f"k<<<1, 1>>>({_POINTERS});")
    ),
    "standard header that PyTorch brings along": _kernel("std::complex<float> c(in[i], FLT_DIG); out[i] = c.real();"),
    "operator for host and device": _kernel(
        "out[i] = (make_float4(1, 2, 3, 4) + make_float4(in[i], 0, 0, 0)).x;",
        head="__host__ __device__ inline float4 operator+(float4 a, float4 b) { return make_float4(a.x + b.x, 0, 0, 0); }",
        launch="float4 sum = make_float4(1, 2, 3, 4) + make_float4(1, 2, 3, 4); k<<<1, (int)sum.x>>>",
    ),
    "name from a using-directive": _kernel(
        "out[i] = ceil_div(n, 3);", head="using namespace at;", includes="#include <ATen/ceil_div.h>"
    ),
    "host function behind one for both sides": _kernel(
        "out[i] = both(in[i]);",
        head="inline float h(float v) { return v; }\n__host__ __device__ float both(float v) { return h(v); }",
    ),
    "fp8 without its header": _kernel("out[i] = float(__nv_fp8_e4m3(in[i]));"),
    "several sources": {
        "cpp_sources": ["torch::Tensor run(torch::Tensor x);", "int twice(int v) { return 2 * v; }"],
        "cuda_sources": [
            "#include <torch/extension.h>\n__global__ void k(const float* in, float* out, int n) { out[0] = in[0]; }",
            _run(f"k<<<1, 1>>>({_POINTERS});"),
        ],
        "functions": ["run", "twice"],
    },
    "C++ only": {
        "cpp_sources": "torch::Tensor run(torch::Tensor x) { return x + 1; }",
        "functions": "run",
    },
    "many argument types": _source(
        "std::vector<torch::Tensor> run(torch::Tensor x, const torch::Tensor& y, int64_t a, int b, float c, double d, bool e,"
        " std::string f, std::vector<int64_t> g, c10::optional<torch::Tensor> h, std::vector<torch::Tensor> l,"
        " at::ScalarType t, c10::Device v) { return {x, y}; }\n"
        "std::tuple<torch::Tensor, int64_t> pair(torch::Tensor x) { return {x, 3}; }\n"
        "__global__ void k(float* out) { out[0] = 1; }",
        cpp="std::vector<torch::Tensor> run(torch::Tensor x, const torch::Tensor& y, int64_t a, int b, float c, double d,"
        " bool e, std::string f, std::vector<int64_t> g, c10::optional<torch::Tensor> h, std::vector<torch::Tensor> l,"
        " at::ScalarType t, c10::Device v);\nstd::tuple<torch::Tensor, int64_t> pair(torch::Tensor x);",
        functions=("run", "pair"),
    ),
}

REFUSED: dict[str, dict[str, Any]] = {
    "function that is not declared": _kernel(_ADD) | {"functions": ["run", "nowhere"]},
    "function that names a kernel": _kernel(_ADD) | {"functions": ["k"]},
    "no declaration in C++": _kernel(_ADD) | {"cpp_sources": ""},
    "two modules": _kernel(_ADD)
    | {
        "cpp_sources": 'torch::Tensor run(torch::Tensor x);\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("r", &run); }'
    },
    "launch in a C++ source": _kernel(_ADD)
    | {"cpp_sources": "torch::Tensor run(torch::Tensor x);\nvoid f() { k<<<1, 1>>>(); }"},
    "CUDA type in a C++ source": _kernel(_ADD)
    | {"cpp_sources": "torch::Tensor run(torch::Tensor x);\nvoid f(float4 v);"},
    "undeclared name in device code": _kernel("out[i] = in[i] + scale;"),
    "missing semicolon": _kernel("out[i] = in[i]"),
    "unbalanced braces": _kernel("if (i) { out[i] = in[i];"),
    "host function called on the device": _kernel(
        "out[i] = half_of(in[i]);", head="float half_of(float v) { return v / 2; }"
    ),
    "device function called on the host": _kernel(
        _ADD, head="__device__ int blocks(int n) { return n; }", launch="k<<<blocks(n), 256>>>"
    ),
    "intrinsic called on the host": _kernel(_ADD, launch="__syncthreads(); k<<<1, 256>>>"),
    "kernel called like a function": _kernel(_ADD, launch="k"),
    "launch of a host function": _kernel(_ADD, head="void h(const float*, float*, int) {}", launch="h<<<1, 256>>>"),
    "kernel that returns": _kernel(_ADD)
    | {"cuda_sources": "__global__ int k(int n) { return n; }\ntorch::Tensor run(torch::Tensor x) { return x; }"},
    "load of PyTorch's half past L1": _kernel("out[i] = __ldcg(reinterpret_cast<const c10::Half*>(in) + i);"),
    # PyTorch declares it for the GPU alone, and nvcc reads what is no template for the host too
    "cached load of PyTorch's half": _kernel("out[i] = __ldg(reinterpret_cast<const c10::Half*>(in) + i);"),
    "no configuration value": _kernel(_ADD, launch="k<<<>>>"),
    "narrowing of a constant": _kernel(_ADD, launch="float f{1e300}; k<<<1, 256>>>"),
    "narrowing in a list": _kernel(_ADD, launch="double w = 2; auto z = torch::zeros({n, w}); k<<<1, 256>>>"),
    "shared variable on the host": _kernel(_ADD, launch="__shared__ int s[3]; s[0] = n; k<<<1, 256>>>"),
    "error in a template that nobody uses": _kernel(
        _ADD, head="template <typename T> __global__ void unused(T* p) { p[0] = missing_name; }"
    ),
    "error in an unused device function": _kernel(
        _ADD, head="__device__ float unused(float v) { return v + missing_name; }"
    ),
    "use before declaration": _source(
        "torch::Tensor first(torch::Tensor x) { return second(x); }\n"
        "torch::Tensor second(torch::Tensor x) { return x; }\n__global__ void k() {}",
        cpp="torch::Tensor first(torch::Tensor x);\ntorch::Tensor second(torch::Tensor x);",
        functions=("first", "second"),
    ),
    "name that only main.cpp includes": _source(
        "#include <torch/types.h>\n__global__ void k() {}\nint run(int n) { return helper(n); }",
        cpp="inline int helper(int n) { return n; }\nint run(int n);",
    ),
    "stream without its header": _kernel(_ADD, launch="auto s = at::cuda::getCurrentCUDAStream(); k<<<1, 256, 0, s>>>"),
    "removed dispatch on type()": _source(
        "template <typename T> __global__ void k(T* p) { p[0] = 1; }"
        + _run('AT_DISPATCH_FLOATING_TYPES(x.type(), "run", ([&] { k<scalar_t><<<1, 1>>>(x.data_ptr<scalar_t>()); }));')
    ),
    "half operator switched off": _kernel(
        "half h = __float2half(in[i]); out[i] = h * h;", includes="#include <cuda_fp16.h>"
    ),
    "constant array of the host on the device": _kernel(
        "out[i] = table[i % 3];", head="static const float table[3] = {1, 2, 3};"
    ),
    "too much shared memory": _kernel("__shared__ float s[60000]; s[threadIdx.x] = in[i]; out[i] = s[i];"),
    "unknown PTX": _kernel('float v; asm volatile("nonsense.f32 %0, %1;" : "=f"(v) : "f"(in[i])); out[i] = v;'),
    "unknown library": _kernel(_ADD, extra_ldflags=["-lno_such_library"]),
    "unknown header": _kernel(_ADD, includes="#include <no_such_header.h>"),
    "old standard": _kernel(_ADD, extra_cuda_cflags=["-std=c++14"]),
    "unknown nvcc flag": _kernel(_ADD, extra_cuda_cflags=["--no-such-flag"]),
    "defined twice": _source(
        _run("(void)n;") + "__global__ void k() {}",
        cpp="torch::Tensor run(torch::Tensor x) { return x; }",
    ),
    "kernel template without arguments to deduce": _source(
        "template <typename T> __global__ void k(float* p) { p[0] = T(1); }"
        + _run("k<<<1, 1>>>(out.data_ptr<float>());")
    ),
}
