"""The splitter: what each thing at namespace scope is, and what it refuses."""

import pytest

from dice.kernels.source.cuda_source import CudaSource, split_source
from dice.kernels.source.lexer import SplitRefused

SOURCE = r"""
#include <torch/extension.h>
#define N 4  // four
namespace a { namespace {
template <typename T, int K = 3>
__global__ void __launch_bounds__(256, 2) k(const T* __restrict__ x, float (&y)[N], void (*f)(int), unsigned n, const dim3) {
  extern __shared__ __align__(16) float sm[];
  __syncthreads();
}
} }
struct Lane { int a; __device__ void go() { a = __shfl_down_sync(0u, a, 1); } };
static __device__ __forceinline__ float4 operator+(float4 a, float4 b) { return a; }
__constant__ float w[N * 2] = {1, 2};
const int B = 256; static const float* ptr = nullptr; int g{3};
using T2 = float; using namespace at; typedef struct { int x; } S;
template <> float foo<int>(int x) { return x; }
__host__ __device__ inline int half_of(int n) { return n / 2; }
std::vector<torch::Tensor> fwd(torch::Tensor x, std::vector<int64_t> v, double e = 1e-5) {
  const char* text = "k<<<1, 2>>>(x); }";
  return {x};
}
auto bar(int x) -> decltype(x) { return x; }
torch::Tensor later(torch::Tensor);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &fwd); }
Foo::Foo(int x) : a{x}, b(3) { }
__global__ void kk(Lane f) { f.go(); }
"""

KINDS = [
    ("include", "torch/extension.h"),
    ("macro", "N"),
    ("scope_open", "a"),
    ("scope_open", ""),
    ("kernel", "k"),
    ("scope_close", ""),
    ("scope_close", ""),
    ("type", "Lane"),
    ("device_function", "operator+"),
    ("device_variable", "w"),
    ("constant", "B"),
    ("host_variable", "ptr"),
    ("host_variable", "g"),
    ("type", "T2"),
    ("using", "at"),
    ("type", "S"),
    ("host_function", "foo"),
    ("host_device_function", "half_of"),
    ("host_function", "fwd"),
    ("host_function", "bar"),
    ("host_declaration", "later"),
    ("macro_call", "PYBIND11_MODULE"),
    ("host_function", "Foo"),
    ("kernel", "kk"),
]


def test_items_are_classified_in_order():
    assert [(item.kind, item.name) for item in split_source(SOURCE).items] == KINDS


def test_items_are_verbatim():
    for item in split_source(SOURCE).items:
        assert item.text == SOURCE[item.start : item.end]
        assert item.line == SOURCE[: item.start].count("\n") + 1


def test_kernel_is_taken_apart():
    kernel = split_source(SOURCE).of_kind("kernel")[0]
    function = kernel.function
    assert function is not None
    assert kernel.namespaces == ("a", "")
    assert function.launch_bounds == "256, 2"
    assert [p.name for p in function.template_parameters] == ["T", "K"]
    assert [(p.name, p.type.replace(" ", "")) for p in function.parameters] == [
        ("x", "constT*__restrict__"),
        ("y", "float(&)[N]"),
        ("f", "void(*)(int)"),
        ("n", "unsigned"),
        (None, "constdim3"),
    ]
    assert function.is_defined
    assert SOURCE[function.body_start :].startswith("{\n  extern")


def test_launches_are_rewritten_everywhere_but_in_strings_and_comments():
    text = (
        '#define RUN(x) \\\n  k<x><<<g, \\\n b>>>(x)\nauto s = "k<<<1,2>>>(3)"; // k<<<1,2>>>(3)\nk<int><<<1,2>>>(3);'
    )
    done = CudaSource(text).with_launches(lambda launch: f"call({launch.callee})")
    assert done == '#define RUN(x) \\\n  call(k<x>)\nauto s = "k<<<1,2>>>(3)"; // k<<<1,2>>>(3)\ncall(k<int>);'


def test_macros_that_make_kernels_are_expanded(preprocess):
    split = split_source(
        "#include <a.h>\n#define KERNEL(name, op) __global__ void name(float* x) { x[0] op 1; }\n"
        "KERNEL(plus, +=)\nKERNEL(minus, -=)\n",
        preprocess,
    )
    assert [k.name for k in split.kernels] == ["plus", "minus"]
    assert split.items[0].text == "#include <a.h>"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("void f() { ", "never closed"),
        ('auto s = "abc', "unterminated"),
        ("__global__ void k() { k<<<1, 2>>>(); }", "inside device code"),
        ("void f() { k<<<>>>(); }", "0 configuration values"),
        ("#define K(x) __global__ void x() {}\n#ifdef OTHER\nK(a)\n#endif\n", "condition depends"),
    ],
)
def test_what_is_not_certain_is_refused(text, reason):
    with pytest.raises(SplitRefused, match=reason):
        split_source(text).check_launches(0, len(text))
