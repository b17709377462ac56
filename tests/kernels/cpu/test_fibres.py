"""Which kernels' threads may wait for each other: directly, or through what they name."""

import pytest

from dice.kernels.cpu.fibres import kernels_that_wait
from dice.kernels.cpu.regions import find_regions
from dice.kernels.cpu.rewrite import rewrite_cuda
from dice.kernels.source.cuda_source import CudaSource

WAITING = {
    "directly": "__global__ void k(float* x) { __syncthreads(); x[0] = 1; }",
    "through a function": "__device__ void f() { __syncwarp(); }\n__global__ void k(float* x) { f(); x[0] = 1; }",
    "through a macro": "#define WAIT() __syncthreads()\n__global__ void k(float* x) { WAIT(); x[0] = 1; }",
    "through a type": "struct S { __device__ void f() { __shfl_sync(1u, 2, 3); } };\n"
    "__global__ void k(float* x) { S s; s.f(); x[0] = 1; }",
    "through an instruction": '__device__ void f() { asm("bar.sync 0;"); }\n'
    "__global__ void k(float* x) { f(); x[0] = 1; }",
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


def test_only_the_kernels_that_wait_are_named():
    text = """__device__ void never() { }
    __global__ void waits() { __syncthreads(); }
    __global__ void runs() { never(); }
    template <class F> __global__ void applies(F f) { f(); }
    """
    functor = "struct Waits { __device__ void operator()() { __syncwarp(); } };"
    for given, names in ((text, {"waits"}), (text + functor, {"waits", "runs", "applies"})):
        source = CudaSource(given)
        assert kernels_that_wait(source, find_regions(source)) == names


@pytest.mark.parametrize("header", ["", "#include <cooperative_groups.h>\n"])
def test_words_of_groups_count_where_there_are_groups(header):
    source = CudaSource(header + "__global__ void k(G g) { g.reduce(); }")
    assert kernels_that_wait(source, find_regions(source)) == ({"k"} if header else set())
