"""Places of narrow arithmetic in C++ that a run came by."""

from __future__ import annotations

import pytest

from dice.kernels.checks.precision import native_has_run
from dice.kernels.checks.seen import Seen
from dice.kernels.source.cuda_source import CudaSource

KERNEL = "__global__ void k(float* x) { x[0] = %s(x[0]); }\n"


def has_run(text: str, launched: str = "k") -> bool:
    source = CudaSource(text)
    token = next(token for token in source.tokens if token.text == "__float2half")
    seen = Seen(None, frozenset(), None, frozenset(), frozenset({launched}), True)
    return native_has_run(source, token, seen)


@pytest.mark.parametrize(
    ("text", "ran"),
    [
        (KERNEL % "__float2half", True),
        ("__device__ float f(float x) { return __float2half(x); }\n" + KERNEL % "f", True),
        ("__device__ float f(float x) { return __float2half(x); }\n" + KERNEL % "g", False),
        (
            "__device__ float f(float x) { return __float2half(x); }\n"
            "__device__ float a(float x) { return f(x); }\n"
            "__device__ float b(float x) { return f(x) + a(x); }\n" + KERNEL % "b",
            True,
        ),
        (
            "__device__ float f(float x) { return g(__float2half(x)); }\n__device__ float g(float x) { return f(x); }\n",
            False,
        ),
        ("void f() { __float2half(1); }", True),
        ("void f() { if (a) __float2half(1); }", False),
    ],
    ids=["a kernel", "of a kernel", "of nobody", "in two ways", "of itself", "the host", "the host, perhaps"],
)
def test_what_has_run(text: str, ran: bool) -> None:
    assert has_run(text) is ran
    assert not has_run(KERNEL % "__float2half", launched="other")


def test_a_long_chain_of_functions() -> None:
    chain = "".join(f"__device__ float f{i}(float x) {{ return f{i + 1}(x); }}\n" for i in range(20_000, 0, -1))
    text = chain.replace("f20001(x)", "__float2half(x)")
    assert has_run(text + KERNEL % "f1")
