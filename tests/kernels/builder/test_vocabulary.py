"""Global names of a preprocessed text, and what one reading of the headers lacks of another's."""

from __future__ import annotations

import pytest

from dice.kernels.builder.vocabulary import global_names, read_vocabulary


@pytest.mark.parametrize(
    ("text", "seen", "hidden"),
    [
        ("float rsqrtf(float value);", {"rsqrtf"}, {"float", "value"}),
        ("inline int f(int a) { int local = a; return local; } int g;", {"f", "g"}, {"a", "local"}),
        ("namespace at { struct Tensor; void sum(); }", {"at"}, {"namespace", "Tensor", "sum"}),
        ("struct S { int member; } s; int after;", {"S", "s", "after"}, {"member"}),
        ('extern "C" { void in_c(int p); }', {"in_c"}, {"p"}),
        ('extern "C" { inline int f() { int local; return local; } } int after;', {"f", "after"}, {"local"}),
        ("enum Mode { kFast, kSlow };", {"Mode", "kFast", "kSlow"}, set()),
        ("typedef enum { kFast } Mode;", {"Mode", "kFast"}, set()),
        ("enum class Mode { kFast };", {"Mode"}, {"kFast"}),
        ("const int total = other + 1;", {"total"}, {"other"}),
        ("std::size_t f(at::Tensor x); using c10::Half;", {"std", "f", "c10"}, {"size_t", "Half"}),
        ('#define MAX(a, b) (a) < (b) ? "}" : "{"\nint after;', {"MAX", "after"}, {"a"}),
        ("const char* s = \"}\"; char c = '{'; int after;", {"s", "c", "after"}, set()),
    ],
)
def test_names_outside_of_every_scope_are_global(text: str, seen: set[str], hidden: set[str]) -> None:
    names = global_names(text)
    assert seen <= names
    assert not hidden & names


STOCK = """# 1 "/usr/torch/include/ATen/ATen.h" 1
namespace at {}
#define AT_X 1
# 1 "/usr/include/c++/12/cfloat" 1 3
#define FLT_DIG 6
# 1 "/usr/include/c++/12/bits/move.h" 1 3
# 1 "/opt/cuda/targets/x86_64-linux/include/cuda_fp16.h" 1
struct half;
# 1 "/opt/cuda/targets/x86_64-linux/include/cuda.h" 1
int both; float __ldg(float);
"""
VOCABULARY = read_vocabulary(
    STOCK,
    bare="float __ldg(float);",
    device="int both; float __ldg(float); struct half;\n#define FLT_DIG 6\n",
    host="namespace at {}\nint both; struct half;\n#define AT_X 1\n#define FLT_DIG 6\n",
)


def test_each_unit_lacks_what_only_stock_reads() -> None:
    assert VOCABULARY.device_lacks == {"at", "AT_X"}
    assert VOCABULARY.host_lacks == {"__ldg"}
    assert VOCABULARY.bare_lacks == {"at", "AT_X", "FLT_DIG", "half", "both", "std"}


def test_headers_are_named_as_an_include_would() -> None:
    assert VOCABULARY.headers == {"ATen/ATen.h", "cfloat", "bits/move.h", "cuda_fp16.h", "cuda.h"}
    assert VOCABULARY.device_headers == {"cfloat", "cuda_fp16.h"}
