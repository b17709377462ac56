"""Which error of a fast route is final, by the lines that it stands on."""

from __future__ import annotations

import time

import pytest

from dice.kernels.builder.final_refusal import is_final, left_out, plain_unit
from dice.kernels.builder.split_roles import Roles
from dice.kernels.source.cuda_source import split_source
from dice.kernels.source.diagnostics import Diagnostic

LACKS = frozenset({"at", "CUDA_KERNEL_LOOP", "half"})
SOURCE = """#include <ATen/at.h>
float a = scale;
auto b = at::ceil_div(1, 2) + scale;
auto c = x.at(1) + y->half + std::at + scale;
#define LOOP(i) \\
    CUDA_KERNEL_LOOP(i, 3)
LOOP(k) { }
half d
int e;
auto g = ::at::x + scale;
"""


def error(text: str) -> Diagnostic:
    return Diagnostic("nvcc", "cuda.cu", 0, True, text)


UNDEFINED, SYNTAX = error('identifier "scale" is undefined'), error('expected a ";"')


@pytest.mark.parametrize(
    ("line", "found", "final"),
    [
        (2, UNDEFINED, True),
        (2, SYNTAX, True),  # the line before is an #include
        (3, UNDEFINED, False),  # what at:: is may matter
        (4, UNDEFINED, True),  # members, and names in other namespaces, are not global names
        (7, UNDEFINED, False),  # by way of the source's own macro
        (9, UNDEFINED, True),
        (9, SYNTAX, False),  # the line before may be what is wrong
        (10, UNDEFINED, False),  # the global namespace qualifies nothing away
        (0, UNDEFINED, False),
        (99, UNDEFINED, False),
    ],
)
def test_an_error_is_final_where_its_lines_name_nothing_that_the_unit_lacks(
    line: int, found: Diagnostic, final: bool
) -> None:
    assert is_final(found, SOURCE, line - 1, LACKS) == final


def test_launches_become_calls_and_lines_stay() -> None:
    text = "void f() {\n  k<<<1,\n    2>>>(x);\n}"
    unit = plain_unit(text, "cuda.cu", 4)
    assert unit is not None
    head, body = unit.split('#line 4 "cuda.cu"\n')
    assert "threadIdx" in head
    assert body == "void f() {\n  k\n(x);\n}"
    assert plain_unit("k<<<1, 2(x);", "cuda.cu") is None


def test_many_launches_without_an_end_are_read_in_time() -> None:
    started = time.process_time()
    assert plain_unit("<<<" * 30_000, "cuda.cu") is None
    assert time.process_time() - started < 5


HEAD = """#include <torch/extension.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
using at::ceil_div;
typedef struct Part { at::Tensor x; } Part_t, *PartPtr;
const int kRows = 3;
inline int host_only(int n) { return n; }
__device__ int device_only(int n) { return n; }
__host__ __device__ int both(int n) { return n; }
"""
BODY = """
__global__ void k(int* x) { x[0] = both(kRows); }
void run(torch::Tensor x) { k<<<1, 1>>>(x.data_ptr<int>()); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""


def test_own_code_that_a_unit_leaves_out_is_lacking_there() -> None:
    split = split_source(HEAD + BODY)
    roles = Roles(split)
    on_device, on_host = left_out(split, roles.on_device), left_out(split, roles.on_host)
    assert on_device is not None
    assert on_host is not None
    assert {"host_only", "run", "ceil_div", "at", "Part", "Part_t", "PartPtr"} <= on_device
    assert not {"kRows", "device_only", "both", "k"} & on_device
    assert {"device_only", "cg"} <= on_host
    assert not {"kRows", "host_only", "run", "k"} & on_host


@pytest.mark.parametrize(
    "line",
    ["using namespace at;", "DEFINE_OPERATOR(add)"],  # any name may come from these
)
def test_left_out_names_that_cannot_be_told_make_nothing_final(line: str) -> None:
    split = split_source(f"{HEAD}{line}\n{BODY}")
    assert left_out(split, Roles(split).on_device) is None
