"""Which side needs which item of a split source; too much is harmless, too little does not compile."""

from __future__ import annotations

import pytest
from cuda_text import split_source

from dice.kernels.builder.split_roles import Roles, without_device_members
from dice.kernels.source.lexer import SplitRefused

SOURCE = """
#include <torch/extension.h>
#include <ATen/cuda/Atomic.cuh>
#include <vector>
#include <cmath>
#include <cub/block/block_reduce.cuh>
#include <cublas_v2.h>
#define N 4
#define HELPER helped_by_macro
using Indices = at::IntArrayRef;
namespace F = torch::nn;
using namespace cooperative_groups;
typedef float real;
enum Mode { fast, exact };
struct Shape { int rows; };
struct Lane { int a; __device__ void go() { } };
struct Options { std::vector<int> sizes; };
const int BLOCK = 256;
const int HOST_ONLY = 3;
constexpr int twice(int n) { return 2 * n; }
__host__ __device__ int both(int n) { return n + BLOCK; }
__host__ __device__ int unused(int n) { return n; }
__device__ float helper(float x) { return x; }
__device__ float named_in_host(float x) { return x; }
__device__ float helped_by_macro(float x) { return x; }
__device__ float S::member(float x) { return x; }
__constant__ float weights[N];
int calls = 0;
__global__ void k(real* x, Shape s, int n = twice(2)) { x[0] = helper(x[1]) + both(fast); }
void prototype(Options);
at::Tensor run(at::Tensor x) {
  auto p = named_in_host; HELPER; k<<<1, BLOCK>>>(x.data_ptr<real>(), Shape{HOST_ONLY});
  return x;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""


def sides(source: str) -> tuple[set[str], set[str]]:
    """Names of the items on the host's and the device's side."""
    roles = Roles(split_source(source))
    named = [item for item in roles.split.items if item.name]
    host = {item.name for item in named if roles.on_host(item)}
    return host, {item.name for item in named if roles.on_device(item)}


def test_the_sides_of_a_source() -> None:
    host, device = sides(SOURCE)
    everything = host | device
    assert everything - host == {
        "cub/block/block_reduce.cuh",
        "cooperative_groups",
        "Lane",
        "both",
        "unused",
        "helper",
        "member",
    }
    assert everything - device == {
        "torch/extension.h",
        "vector",
        "cublas_v2.h",
        "Indices",
        "nn",
        "Options",
        "HOST_ONLY",
        "calls",
        "prototype",
        "run",
        "PYBIND11_MODULE",
    }
    assert {
        "k",
        "weights",
        "N",
        "real",
        "Shape",
        "Mode",
        "BLOCK",
        "twice",
        "cmath",
        "ATen/cuda/Atomic.cuh",
    } <= host & device


@pytest.mark.parametrize(
    ("source", "host", "device"),
    [
        ("#include <vector>\n__device__ std::vector<int> v;", True, True),
        ("#include <vector>\n__device__ int v;", True, False),
        ("#include <cublas_v2.h>\n__device__ int v = cublasFoo();", True, True),
        ("#include <cooperative_groups.h>", False, True),
        ("#include <mma.h>", False, True),
        ("#include <pybind11/pybind11.h>", True, False),
        ('#include "own.h"', True, True),
    ],
)
def test_the_side_of_an_include(source: str, host: bool, device: bool) -> None:
    roles = Roles(split_source(source))
    assert (roles.on_host(roles.split.items[0]), roles.on_device(roles.split.items[0])) == (host, device)


def test_words_lead_through_macros_types_constants_and_functions_of_both_sides() -> None:
    roles = Roles(
        split_source(
            "#define A B\nconst int B = C;\nstruct D { E e; };\nusing C = D;\n__host__ __device__ int g() { return h; }\n"
            "__global__ void k(F f = F()) { x; }\nvoid run() { A; }\n__device__ void d() { g(); }"
        )
    )
    assert {"A", "B", "C", "D", "E", "F", "run"} <= roles.host_words
    assert not {"x", "g", "h", "d"} & roles.host_words
    assert {"g", "h", "x", "F", "k", "d"} <= roles.device_words
    assert not {"A", "B", "run"} & roles.device_words


@pytest.mark.parametrize(
    ("typedef", "used"),
    [
        ("typedef float (*op_t)(float value);", "op_t"),
        ("typedef float row[N];", "row"),
        ("typedef struct Args { Part part; } Args_t, *ArgsPtr;", "ArgsPtr"),
        ("typedef struct Args { Part part; } Args_t, *ArgsPtr;", "Args"),
    ],
)
def test_a_typedef_is_on_the_device_by_each_of_its_names(typedef: str, used: str) -> None:
    source = f"#define N 4\nstruct Part {{ int x; }};\n{typedef}\n"
    roles = Roles(split_source(f"{source}__global__ void k({used} x) {{ }}\n"))
    (item,) = [item for item in roles.split.items if item.text == typedef]
    assert roles.on_device(item)
    assert ("Part" in roles.device_words) == ("Part" in typedef)
    lonely = Roles(split_source(f"{source}__global__ void k(float x) {{ typedef float y; }}\n"))
    assert [item.name for item in lonely.split.items if lonely.on_device(item)] == ["N", "k"]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("#ifdef __CUDA_ARCH__\n#endif", "which compiler or architecture"),
        ("#define A __CUDACC_VER_MAJOR__", "which compiler or architecture"),
        ("__managed__ int n;", "managed variables"),
        ("int f() { return __NVCC__; }", "which compiler it is compiled by"),
        ("int n = __CUDACC__;", "which compiler it is compiled by"),
    ],
)
def test_what_cannot_be_told_apart(source: str, reason: str) -> None:
    with pytest.raises(SplitRefused, match=reason):
        Roles(split_source(source))


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("void f() { thrust::sort(a); }", "thrust"),
        ("namespace cg = cooperative_groups;\nvoid f() { cg::this_grid(); }", None),
        ("using namespace cub;\nvoid f() { g(); }", None),
        ("using cub::BlockReduce;\nvoid f() { BlockReduce b; }", "BlockReduce"),
        ("auto x = cute::make_layout();", "cute"),
        ("__global__ void k() { cooperative_groups::this_grid(); }\nvoid f() { k<<<1, 1>>>(); }", None),
    ],
)
def test_host_code_that_only_nvcc_compiles(source: str, word: str | None) -> None:
    roles = Roles(split_source(source))
    if word is None:
        roles.check_host()
        return
    with pytest.raises(SplitRefused, match=f"host code uses {word}, which only nvcc can compile"):
        roles.check_host()


def test_a_class_without_the_bodies_of_its_device_members() -> None:
    split = split_source(
        "struct A { int a; __device__ A(int x = n ? 1 : 2) : a{x} { a++; }\n"
        "  __device__ int f() const { struct L { __device__ int g() { return 1; } }; return 1; }\n"
        "  __host__ __device__ int g() { return 2; } int h() { return 3; } __device__ int d(); };"
    )
    (item,) = split.items
    assert without_device_members(split, item) == (
        "struct A { int a; __device__ A(int x = n ? 1 : 2) ;\n  __device__ int f() const ;\n"
        "  __host__ __device__ int g() { return 2; } int h() { return 3; } __device__ int d(); };"
    )
