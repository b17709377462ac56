"""Which kernels' threads may wait for each other: directly, or through what they name."""

import pytest

from dice.kernels.cpu.rewrite import rewrite_cuda

WAITING = {
    "directly": "__global__ void k(float* x) { __syncthreads(); x[0] = 1; }",
    "through a function": "__device__ void f() { __syncwarp(); }\n__global__ void k(float* x) { f(); x[0] = 1; }",
    "through a macro": "#define WAIT() __syncthreads()\n__global__ void k(float* x) { WAIT(); x[0] = 1; }",
    "through a type": "struct S { __device__ void f() { __shfl_sync(1u, 2, 3); } };\n"
    "__global__ void k(float* x) { S s; s.f(); x[0] = 1; }",
    "through volatile memory": "__global__ void k(volatile float* x) { x[0] = 1; }",
}
LOOPING = {
    "nothing to wait for": "__global__ void k(float* x) { x[0] = 1; }",
    "another kernel waits": "__global__ void other() { __syncthreads(); }\n__global__ void k(float* x) { x[0] = 1; }",
    "only spoken of": "__global__ void k(float* x) { /* __syncthreads(); */ x[0] = 1; }",
}


def uses_fibres(text: str) -> bool:
    """Whether the kernel `k` was given the form of fibres."""
    body = rewrite_cuda(text).text.partition("void k(")[2].partition("void other(")[0]
    return "DICE_CPU_FIBRES" in body


@pytest.mark.parametrize("name", WAITING)
def test_a_kernel_that_waits_gets_fibres(name):
    assert uses_fibres(WAITING[name])


@pytest.mark.parametrize("name", LOOPING)
def test_a_kernel_that_never_waits_is_a_loop(name):
    assert not uses_fibres(LOOPING[name])
