"""Variables that keep their value between calls."""

from __future__ import annotations

import pytest

from dice.kernels.source.cuda_source import CudaSource


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("int a; static float *b = nullptr, c[2]; thread_local T<int> d{1};", "a b c d"),
        ("namespace { std::unordered_map<int, at::Tensor> cache; }", "cache"),
        ("__device__ float a[4]; __managed__ int b;", "a b"),
        ("static cublasHandle_t handle = make(); auto made = new const int(3);", "handle made"),
        ("const int a = 1; constexpr float b = 2; static const T c{};", ""),
        ("const float* a; const float* const b = a; float* const c = 0;", "a b c"),
        ("__constant__ float w[4];", ""),
        ("void f(int a) { int b; static int c = 0, d; { thread_local std::vector<int> e{a}; } }", "c d e"),
        ("void f() { static const int a = 1; static constexpr int b = 2; const static T c; static const T* d; }", "d"),
        ("struct A { const static int a = 1; int const static b = 2; };", ""),
        ("__global__ void k() { static __shared__ float a[4]; __shared__ float b; }", ""),
        ("static int f(int x); static void g() { }", ""),
        ("struct A { static int a; int b; static int f(int c); static inline float d = f(1); };", "a d"),
        ("struct A { static constexpr int a = 1; static const int b = 2; };", ""),
        ("struct A { void f() { static int a; } };", "a"),
        ("auto g = [] { static int a; return a++; };", "g a"),
        ("void f() { auto g = [] { static int a; return a++; }; }", "a"),
        ("enum E { a }; using F = int; typedef int G; extern template struct H<int>;", ""),
        ("struct A a; void f() { static struct B b; static union C<int>* c; } struct D; enum class E : int;", "a b c"),
        ("at::Tensor a = torch::zeros({2}), b(a);", "a b"),
    ],
)
def test_variables(text: str, names: str) -> None:
    found = CudaSource(text).variables
    assert [variable.name for variable in found] == names.split()
    for variable in found:
        assert text[variable.start :].startswith(variable.name)
