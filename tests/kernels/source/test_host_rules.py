"""What nvcc refuses in host code and g++ would take: refused where the text proves it, not split where it does not."""

from __future__ import annotations

import pytest
from cuda_soup import MACROS, REDUCTION, TILES

from dice.kernels.source.cuda_source import split_source
from dice.kernels.source.host_rules import check_host_rules
from dice.kernels.source.lexer import Refuted, SplitRefused
from dice.kernels.source.macros import Preprocess

K = "__global__ void k(int x) { }\n"
DEVICE = "__device__ int d(int x) { return x; }\n"
HOST = "int h(int x) { return x; }\n"


@pytest.mark.parametrize(
    "text",
    [
        REDUCTION,
        TILES,
        MACROS,
        K + "void f() { k<<<1, 2>>>(3); (k)<<<1, 2>>>(3); auto p = k; g(k, 4); }",
        K + "void f() { a.k(1); b->k(2); ns::k(3); k <int> other; }",
        K + "struct A { int k(int x) { return x; } };",
        DEVICE + "__global__ void k() { d(1); }",
        "template <class T> __global__ T k(T x) { }",
        "template <class T> __global__ std::enable_if_t<std::is_same<T, float>::value> k(T x) { }",
        K + "int k(float x) { return x; }\nvoid f() { k<<<1, 2>>>(3); k(3.f); }",
        "static __global__ __launch_bounds__(256) void k() { }",
        "float f() { constexpr int n = 3; return sqrt(2.f) + exp(n); }",
        "float f() { float y; if constexpr (true) { y = sqrt(2.f); } const float x = sqrt(3.f); return x; }",
        "float f() { constexpr float x = 2.f, y = x * sqrt_table[1]; return x; }",
        "__global__ void k() { __shared__ float s[2]; constexpr float x = sqrtf(2.f); }",
    ],
)
def test_what_is_allowed(preprocess: Preprocess, text: str) -> None:
    check_host_rules(split_source(text, preprocess))


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("\n__global__ k(int x) { }", 2, "no storage class or type specifier"),
        ("__global__ int k(int x);", 1, "must have a void return type"),
        ("__global__ unsigned long long k(int x) { }", 1, "must have a void return type"),
        ("void f() {\n  __shared__ float s[2];\n}", 2, 'a "__shared__" variable declaration is not allowed'),
        ("void f() {\n  __constant__ float s[2];\n}", 2, 'a "__constant__" variable declaration is not allowed'),
        (HOST + "void f() { h<<<1, 2>>>(3); }", 2, "a host function call cannot be configured"),
        (HOST + "void f() {\n ::h<<<1, 2>>>(3); }", 3, "a host function call cannot be configured"),
        (
            "__host__ __device__ " + HOST + "void f() { h<<<1, 2>>>(3); }",
            2,
            "a host function call cannot be configured",
        ),
        (DEVICE + "void f() { d<int><<<1, 2>>>(3); }", 2, "a host function call cannot be configured"),
        (K + "void f() {\n  k(3);\n}", 3, "a __global__ function call must be configured"),
        (K + "void f() { k<float, 2>(3); }", 2, "a __global__ function call must be configured"),
        ("__global__ void k(int);\nvoid f() { k(3); }", 2, "a __global__ function call must be configured"),
        ("void f() { g<<<1>>>(2); h<<<>>>(3); }", 1, "0 configuration values"),
    ],
)
def test_what_cannot_compile(text: str, line: int, reason: str) -> None:
    with pytest.raises(Refuted, match=reason) as refuted:
        check_host_rules(split_source(text))
    assert refuted.value.line == line


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("__global__ RETURN k(int x) { } struct A { __global__ void g() { } };", "a kernel inside a class"),
        ("void f() { auto g = [=] __device__ (int i) { return i; }; }", "device specifier inside host code"),
        ("void f() { __shared__ float s; auto g = [=] __device__ { }; }", "device specifier inside host code"),
        ("void f() { int __managed__ x; }", "device specifier inside host code"),
        ("MODULE(a, m) { __shared__ float s; }", "device specifier inside host code"),
        ("float f() { constexpr float x = sqrt(2.f); return x; }", "g\\+\\+ folds"),
        ("float f() { static constexpr float a = 1, b[2] = {2, std::expf(3.f)}; return a; }", "g\\+\\+ folds"),
        (HOST + "void f() { auto h = pick(); h<<<1, 2>>>(3); }", "cannot be configured"),
        (K + "void f() { int k = 3; k(3); }", "must be configured"),
        (K + "MODULE(a, m) { k(3); }", "must be configured"),
    ],
)
def test_what_is_not_certain(text: str, reason: str) -> None:
    with pytest.raises(SplitRefused, match=reason) as refused:
        check_host_rules(split_source(text))
    assert not isinstance(refused.value, Refuted)
