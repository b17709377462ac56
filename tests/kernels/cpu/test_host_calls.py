"""Host functions in device code, as nvcc 13 was seen to judge each of these sources: with PyTorch's flags, and the headers
that they lack."""

from __future__ import annotations

import pytest

from dice.kernels.cpu.host_calls import check_host_calls
from dice.kernels.cpu.regions import find_regions
from dice.kernels.cpu.unsupported import UnsupportedOnCpu
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.lexer import Refuted, words

BLAS = 'extern "C" void sgemm_(const char*);\n'
HOST = "static inline int host(int a) { return a; }\n"
USE = "__global__ void k(int* p) { p[0] = f(1); }\n"


def check(text: str) -> None:
    source = CudaSource(text)
    check_host_calls(source, find_regions(source))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (BLAS + '__global__ void k(int* p) { if (threadIdx.x == 0) sgemm_("T"); }', "sgemm_"),
        (BLAS + '__global__ void k(int* p) { auto f = [&] { ::sgemm_("T"); }; f(); }', "sgemm_"),
        (BLAS + '__global__ void k(int* p) { void (*f)(const char*) = sgemm_; f("T"); }', "sgemm_"),
        (BLAS + '__device__ void f() { sgemm_("T"); }', "sgemm_"),
        (HOST + "__device__ int f(int a) { return host(a); }\n" + USE, "host"),
        (HOST + "template <class T> __device__ int f(T a) { return host(2); }\n" + USE, "host"),
        (
            HOST + "template <class T> __global__ void k(T* p) { p[0] = host(2); }\nvoid g() { k<int><<<1, 1>>>(0); }",
            "host",
        ),
        ("template <class T> T f(T a) { return a; }\n" + USE, "f"),
        ("namespace n { int f(int a) { return a; } }\n__global__ void k(int* p) { p[0] = n::f(1); }", "f"),
        ("__global__ void k(char* p) { p[0] = getenv(p) != 0; }", "getenv"),
        ("__global__ void k(char* p) { std::fprintf(stderr, p); }", "fprintf"),
        ("__global__ void k(float* p) { cblas_sgemm(1, 2, p); }", "cblas_sgemm"),
        ("__device__ bool f(char* p) { return getenv(p); }", "getenv"),
        ("__device__ bool f(char* p) { return ::getenv(p); }", "getenv"),
        ("__device__ int f(int a) { return 1 + rand(); }", "rand"),
        (HOST + "__device__ int f(int a) {\n#if 1\n#endif\n return host(a); }", "host"),
        (HOST + "__device__ int f(int a) {\n#ifdef __CUDA_ARCH__\n#endif\n return host(a); }", "host"),
        (HOST + "__device__ int f(int a) { return ::host(a); }", "host"),
        (HOST + "__device__ int f(int a) { return a * host(a); }", "host"),
        (HOST + "__device__ int f(int a) {\n#if 1\n#else\n#endif\n return host(a); }", "host"),
        (
            HOST + "template <class T> __device__ int g(T a) { return host(2); }\n"
            "template <class T> __device__ int f(T a) { return g(a); }\n" + USE,
            "host",
        ),
        ("int f(int a) { constexpr int b = 1; return a + b; }\n" + USE, "f"),
        (HOST + "__device__ int f(int a) { auto g = host; return g(a); }", "host"),
        (
            HOST + "__device__ int g(int, int (*)(int));\n__device__ int f(int a) { return g(a, host) + g(a, &host); }",
            "host",
        ),
        (HOST + "__device__ int f(int a) { int b = 1; b = a, host(b); return b; }", "host"),
        (HOST + "__device__ int f(int a) { int b = a * 2, c = b * host(b); return c; }", "host"),
        (HOST + "__device__ int f(int a) { int b[] = {a, host(a), 3}; return b[0]; }", "host"),
        ('__global__ void k(float* p) { ((void (*)())dlsym(nullptr, "sgemm_"))(); }', "dlsym"),
    ],
)
def test_nvcc_refuses_it(text: str, name: str) -> None:
    with pytest.raises(Refuted) as caught:
        check(text)
    assert f'calling a __host__ function("{name}") from a __' in caught.value.reason


@pytest.mark.parametrize(
    "text",
    [
        BLAS + '#define MULTIPLY sgemm_\n__global__ void k(int* p) { MULTIPLY("T"); }',
        BLAS + '__global__ void k(int* p) {\n#if 1\n sgemm_("T");\n#endif\n}',
        BLAS + '__host__ __device__ void f(int) { sgemm_("T"); }\n' + USE,
        BLAS + 'struct S { void run() { sgemm_("T"); } };\n__global__ void k(int* p) { S s; s.run(); }',
        BLAS + "__global__ void k(void (*f)(const char*)) { }\nvoid g() { k<<<1, 1>>>(sgemm_); }",
        "#define READ(p) getenv(p)\n__global__ void k(char* p) { p[0] = READ(p) != 0; }",
        HOST + "#define H(a) host(a)\n__global__ void k(int* p) { p[0] = H(1); }",
        "auto f = [](char* p) { return getenv(p) != 0; };\n__global__ void k(char* p) { p[0] = f(p); }",
        HOST + "__device__ int f(int a) { return sizeof(host(a)); }",
        HOST + "__device__ int f(int a) { decltype(host(a)) b = a; return b; }",
        HOST + "__device__ int f(int a) noexcept(noexcept(host(a))) { return host(a); }",
        HOST + "__device__ int f(int a) {\n#if 1\n#if 2\n#endif\n return host(a);\n#endif\n}",
        HOST + "__device__ int f(int a) {\n#if 1\n return a;\n#else\n return host(a);\n#endif\n}",
        HOST + "struct F { int (*f)(int); };\n__global__ void k(F f) { }\nvoid g() { k<<<1, 1>>>(F{host}); }",
        HOST + "__global__ void k(int (*f)(int)) { }\nvoid g() { k<<<1, 1>>>(host); }\nvoid h(int* host) { }",
        HOST + "__global__ void k(int (*f)(int)) { }\nvoid h(int* host) { }\nvoid g() { k<<<1, 1>>>(host); }",
        HOST + "__global__ void k(int (*f)(int), int n) { }\nvoid g() { k<<<1, 1>>>(host, 1); }",
        HOST + "template <class T> __device__ int f(T a) { if constexpr (true) return host(2); }\n" + USE,
    ],
)
def test_what_may_call_the_host_does_not_run_here(text: str) -> None:
    with pytest.raises(UnsupportedOnCpu):
        check(text)


@pytest.mark.parametrize(
    "text",
    [
        "__device__ int f(int a) { return a; }\n" + USE,
        "constexpr int f(int a) { return a; }\n" + USE,
        "inline __host__ __device__ int f(int a) { return a; }\n" + USE,
        "int f(int a);\n__device__ int f(int a) { return a; }\n" + USE,
        HOST + "__global__ void k(int* p) { auto host = [](int a) { return a; }; p[0] = host(1); }",
        HOST + "__global__ void k(int* p, int host) { p[0] = host; }",
        HOST + "__global__ void k(int* p) {\n#ifndef __CUDA_ARCH__\n p[0] = host(1);\n#endif\n}",
        HOST + "template <class T> __device__ int f(T a) { return host(2); }",
        HOST + "__host__ __device__ int f(int a) { return host(a); }",
        HOST + "__global__ void k(int* p) { p[0] = 1; }\nvoid g(int n, int* p) { k<<<host(n), 1>>>(host(n) ? p : 0); }",
        HOST + "__global__ void k(int* p) { }\nvoid g(int* q) { auto host = q; k<<<1, 1>>>(host); }",
        HOST + "struct B { int host; };\n__global__ void k(B* p) { p->host = 1; }",
        HOST + "__global__ void k(int p) { }\nvoid g(int n) { k<<<1, 1>>>(host(n)); }",
        "float fmaxf(float a) { return a; }\n__global__ void k(float* p) { p[0] = fmaxf(1.f, 2.f); }",
        "namespace a { int f(int a) { return a; } }\nnamespace b { __device__ int f(int a); }\n__global__ void k(int* p) { p[0] = b::f(1); }",  # noqa: E501
        '__global__ void k(int* p) { printf("%d", p[0]); void* q = malloc(4); free(q); memcpy(p, p + 1, 4); }',
        "struct Box { __device__ int read(int i) { return i; } };\n__global__ void k(Box* p) { p->read(3); }",
        "__device__ int time(int a) { return a; }\n__global__ void k(int* p) { p[0] = time(1); }",
        HOST + "__global__ void k(int* p) { }\nvoid g(int* q) { auto host = q; k<<<1, 1>>>(host); }\nvoid h() { }",
        "struct S { int rows() { return 1; } };\nstruct B { int rows; };\n__global__ void k(B* p) { p->rows = 1; }",
        '#include "box.h"\n__global__ void k(Box* p) { p->close(1); Box b; b.close(1); }',
        HOST + "__global__ void k(int* p) {\n#pragma unroll\n for (int i = 0; i < 4; ++i) p[i] = i;\n}",
        HOST + "__global__ void k(int* p) { auto& host = p[0]; p[0] = host; }",
        "OUR_HOST_DEVICE int f(int a) { return a; }\n" + USE,
        "struct R { __device__ int close(int a) { return a; } };\n__global__ void k(R* p) { p->close(1); R r; r.close(1); }",
        "namespace own { __device__ int time(int); }\n__global__ void k(int* p) { p[0] = own::time(1); }",
        "__global__ void k(int* p) { int time(3); p[0] = time; }",
        "__global__ void k(int* p) { int time = 3; p[0] = time; }",
        HOST + "__global__ void k(int* p) { const auto& host = p; p[0] = host[1]; }",
        HOST + "__global__ void k(int* p) {\n#ifdef __CUDA_ARCH__\n p[0] = 1;\n#else\n p[0] = host(1);\n#endif\n}",
        HOST + "__global__ void k(int* p) {\n#if A\n#elif !defined(__CUDA_ARCH__)\n p[0] = host(1);\n#endif\n}",
        HOST + "__global__ void k(int* p) {\n#ifndef __CUDA_ARCH__\n#if 1\n p[0] = host(1);\n#endif\n#endif\n}",
        HOST + "template <class T> __global__ void k(T* p) { p[0] = host(2); }",
        "struct S { int rows() { return 1; } };\n__global__ void k(int* p) { p[0] = 2; }",
        "#define HD __host__ __device__\nHD int f(int a) { return a; }\n" + USE,
        HOST
        + "__global__ void k(float* p) { float a = fmaxf(p[0], 1.f), host = expf(a - 1.f), b; b = a * host; p[1] = b; }",
        HOST + "__global__ void k(float* p) { for (int i = 0, host = 4; i < host; ++i) p[i] = i; }",
        HOST + "__global__ void k(float* p) { float *host = p + 1; host[0] = 1.f; }",
        HOST + "__global__ void k(float* p) { unsigned long long a, host, b; a = host = b = 1; p[0] = a + b; }",
        HOST
        + "__global__ void k(float* p) { __shared__ float a[4][4], host[4]; host[0] = a[0][0] = 1.f; p[0] = host[0]; }",
        HOST + "__global__ void k(float* p) { if (p[0] > 0) { const float a{1.f}, host{2.f}; p[0] = a + host; } }",
    ],
)
def test_nvcc_takes_it(text: str) -> None:
    check(text)


@pytest.mark.parametrize(
    "text",
    [
        "int f(int a) { return a; }\n__device__ int f(float a) { return 1; }\n" + USE,
        "int f(int a) { return rand(); }\n__device__ int f(float a) { return 1; }\n" + USE,
        "int f(int a) { return a; }\nconstexpr int f(float a) { return 1; }\n" + USE,
    ],
)
def test_which_overload_is_called_is_left_to_nvcc(text: str) -> None:
    check(text)


@pytest.mark.parametrize(
    "name",
    sorted(
        words(
            "cblas_dot lapack_f LAPACKE_f mkl_f MKL_f openblas_f sgemm_ dgemv_ csymm_ zsyrk_ strsm_ "
            "strmm_ sger_ saxpy_ sdot_"
        )
    ),
)
def test_functions_of_a_blas_are_the_hosts(name: str) -> None:
    with pytest.raises(Refuted):
        check(f"__global__ void k(float* p) {{ {name}(p); }}")
    check(f"__global__ void k(float* p) {{ my{name}(p); }}")


@pytest.mark.parametrize(
    "name",
    sorted(
        words(
            """
            abs fabs fmax min fmin sqrtf rsqrt cbrt exp exp2 expm1 exp10f log log1p log2f log10 pow powf sin cos tan sinh cosh
            tanhf asin acosh atan atan2 erf erfc floor ceil round rint trunc fmod fma hypot norm clamp swap isnan isinf
            isfinite lgamma tgamma copysign div
            """
        )
    ),
)
def test_names_of_mathematics_may_mean_cudas(name: str) -> None:
    check(f"float {name}(float a) {{ return a; }}\n__global__ void k(float* p) {{ p[0] = {name}(1.f); }}")
    with pytest.raises(Refuted):
        check(f"float my{name}(float a) {{ return a; }}\n__global__ void k(float* p) {{ p[0] = my{name}(1.f); }}")
