"""What an item is and what it declares, from its tokens."""

from __future__ import annotations

import pytest

from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.items import declared_names, is_alias, is_variable, type_name, variable_kind
from dice.kernels.source.lexer import read_tokens


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("int x;", "x"),
        ("int x = 3, *y, z[2] = {1, 2}, w{4}, v(5);", "x y z w v"),
        ("std::map<int, std::vector<int>> m;", "m"),
        ("float (*f)(int), (&r)[3] = a, (&&s)[2] = b;", "f r s"),
        ('const char* const text = "a, b";', "text"),
        ("alignas(16) float x;", "x"),
        ("__attribute__((aligned(8))) int x;", "x"),
        ("float x __attribute__((vector_size(16))) = 1;", "x"),
        ("float (*const f)(int);", "f"),
        ("decltype(a + b) c;", "c"),
        ("unsigned bits : WIDTH, : 0, more : 4;", "bits more"),
        ("static T<(a > b), 2> t = T<1, 2>{c, d};", "t"),
        ("", ""),
        ("= 3;", ""),
    ],
)
def test_declared_names(text: str, names: str) -> None:
    assert [token.text for token in declared_names(read_tokens(text))] == names.split()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("__constant__ float w[2];", "device_variable"),
        ("static __device__ int n = 0;", "device_variable"),
        ("extern __shared__ float s[];", "device_variable"),
        ("__managed__ int n;", "device_variable"),
        ("const int n = 1;", "constant"),
        ("constexpr int n = f(__constant__);", "constant"),
        ("static const float* p = nullptr;", "host_variable"),
        ("int n = const_cast<int>(m);", "host_variable"),
        ("auto f = [](const int* x) { };", "host_variable"),
    ],
)
def test_variable_kinds(text: str, kind: str) -> None:
    assert variable_kind(read_tokens(text)) == kind


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        ("__device__ float x;", True),
        ("__constant__ __align__(16) float x[3];", True),
        ("alignas(16) __device__ float x;", True),
        ("__device__ int n = f(3);", True),
        ("__device__ int f(int);", False),
        ("float x;", False),
    ],
)
def test_device_variables(text: str, variable: bool) -> None:
    assert is_variable(read_tokens(text)) == variable


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("typedef float real;", "real"),
        ("typedef struct A { int x; } B;", "B"),
        ("typedef float (*op_t)(float value);", "op_t"),
        ("typedef float op(float value);", "op"),
        ("typedef float row[N];", "row"),
        ("typedef float four __attribute__((vector_size(N)));", "four"),
        ("typedef std::array<int, N> A;", "A"),
        ("typedef struct { int x; } __align__(16) A;", "A"),
        ("using F = int;", "F"),
        ("template <class T, template <class> class U> struct A { };", "A"),
        ("template <class T> concept C = true;", "C"),
        ("struct alignas(8) __align__(16) A { };", "A"),
        ("struct __attribute__((packed)) A { };", "A"),
        ("enum class E : int { a };", "E"),
        ("enum struct E { a };", "E"),
        ("struct { int x; } s;", ""),
        ("union;", ""),
    ],
)
def test_names_of_types(text: str, name: str) -> None:
    assert type_name(read_tokens(text)) == name


@pytest.mark.parametrize(
    ("text", "alias"),
    [
        ("template <class T> using A = B<T>;", True),
        ("template <class T> template <class U> concept C = true;", True),
        ("struct A;", True),
        ("struct alignas(8) ns::A;", True),
        ("enum class E;", True),
        ("enum E : unsigned int;", True),
        ("template <class T> struct A<T, int>;", True),
        ("struct A a;", False),
        ("struct A<int> a = {};", False),
        ("struct A* a;", False),
        ("struct A& a = b;", False),
        ("struct A a[2];", False),
        ("struct A f();", False),
        ("struct A (*f)(int);", False),
        ("enum E e = E::a;", False),
        ("struct;", False),
        ("int x;", False),
        ("", False),
    ],
)
def test_aliases_and_forward_declarations(text: str, alias: bool) -> None:
    assert is_alias(read_tokens(text)) == alias


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("typedef struct Node { int x; struct Node* next; } Args, *ArgsPtr;", "Args ArgsPtr Node"),
        ("typedef struct { int x; } *Only;", "Only"),
        ("typedef enum { a, b } Mode;", "Mode"),
        ("typedef float real, row[N];", "real row"),
        ("struct A { int x; };", "A"),
    ],
)
def test_a_typedef_declares_several_names(text: str, names: str) -> None:
    (item,) = CudaSource(text).items
    assert item.name == names.split()[0]
    assert item.declared == set(names.split())


def test_what_an_item_mentions() -> None:
    (item,) = CudaSource('void f() {\n#define A b\n  g("h", i::j); // k\n}').items
    assert item.identifiers == {"void", "f", "define", "A", "b", "g", "i", "j"}
