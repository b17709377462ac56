"""The CPU back end refuses static shared memory that ptxas refuses, and nothing else. nvcc is asked where there is one."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from nvcc import NVCC, needs_nvcc

from dice.kernels.builder.builder import Builder
from dice.kernels.builder.cpu_static_shared import used_arrays
from dice.kernels.candidate.extension_call import load_inline
from dice.kernels.source.lexer import tokenize

HEAD = "__global__ void k(char* out, int i) { __shared__ "
USE = "; s[threadIdx.x] = i; __syncthreads(); out[i] = s[i]; }"
LAUNCH = "void launch(char* out) { k<<<1, 64>>>(out, 1); }"
TEMPLATE = f"template <int N> {HEAD}char s[N * 2]{USE} void launch(char* out) {{ k<BYTES / 2><<<1, 64>>>(out, 1); }}"
FUNCTION = "__device__ int f(int i) { __shared__ char s[30000]; s[threadIdx.x] = i; __syncthreads(); return s[i]; } "
PROCEDURE = FUNCTION.replace("int f(int i)", "void p(char* out, int i)").replace("return", "out[-i] =")
TILES = "__global__ void k(float* out) { __shared__ float a[96][64], b[HEIGHT][64];" + (
    "a[threadIdx.y][threadIdx.x] = b[threadIdx.x][threadIdx.y] = 1; __syncthreads();"
    "out[threadIdx.x] = a[threadIdx.x][threadIdx.y] * b[threadIdx.y][threadIdx.x]; }"
    "void launch(float* out) { k<<<1, 64>>>(out); }"
)

# What refuses, with the bytes that ptxas counts, and beside it what it builds.
REFUSED = {
    "one byte more": (f"{HEAD}char s[49153]{USE} {LAUNCH}", 49153),
    "a size from the template": (TEMPLATE.replace("BYTES", "49154"), 49154),
    "a size from a macro": (f"#define SIZE 60000\n{HEAD}char s[SIZE]{USE} {LAUNCH}", 60000),
    "tiles": (TILES.replace("HEIGHT", "97"), 49408),
    "blocks that come one after the other": (
        "__global__ void k(char* out, int i) {"
        "{ __shared__ char s[30000]; s[threadIdx.x] = i; __syncthreads(); out[i] = s[i]; }"
        "{ __shared__ char s[30000]; s[threadIdx.x] = i + 1; __syncthreads(); out[i + 64] = s[i]; } }" + LAUNCH,
        60000,
    ),
    "a device function's beside the kernel's": (
        f"{PROCEDURE}{HEAD}char s[30000]{USE[:-2]} p(out, i); }} {LAUNCH}",
        60000,
    ),
    "a device function called by a device function": (
        f"{PROCEDURE.replace('30000', '60000')}__device__ void q(char* out) {{ p(out, 3); }}"
        f"__global__ void k(char* out, int i) {{ q(out); }} {LAUNCH}",
        60000,
    ),
    "a kernel that nobody launches": (f"{HEAD}char s[60000]{USE}", 60000),
    "atomics that nobody reads": (f"{HEAD}int s[15000]; atomicAdd(&s[threadIdx.x], i); }} {LAUNCH}", 60000),
    "members": (
        f"struct Two {{ char a[30000], b[30000]; }}; {HEAD}Two t; t.a[threadIdx.x] = t.b[i] = i; __syncthreads();"
        f"out[i] = t.a[i] + t.b[i + 1]; }} {LAUNCH}",
        60000,
    ),
}
BUILT = {
    "no byte more": f"{HEAD}char s[49152]{USE} {LAUNCH}",
    "a size from the template": TEMPLATE.replace("BYTES", "49152"),
    "a template that nobody asks for": f"template <int N> {HEAD}char s[N * 99999]{USE}",
    "tiles": TILES.replace("HEIGHT", "96"),
    "an array that nobody uses": f"{HEAD}char s[60000]; out[i] = 1; }} {LAUNCH}",
    "an array that nobody reads": f"{HEAD}char s[60000]; s[threadIdx.x] = i; __syncthreads(); out[i] = 1; }} {LAUNCH}",
    "a branch that is never taken": f"{HEAD}char s[60000]; if (sizeof(i) < 4) {{ {USE[1:]} }} {LAUNCH}",
    "two kernels": f"{PROCEDURE}__global__ void other(char* out, int i) {{ p(out, i); }} {HEAD}char s[30000]{USE} {LAUNCH}",
    "a device function that no kernel calls": f"{PROCEDURE.replace('30000', '60000')}{HEAD}char s[64]{USE} {LAUNCH}",
    "a device function called twice": f"{PROCEDURE}{HEAD}char s[9000]{USE[:-2]} p(out, i); p(out, 3); }} {LAUNCH}",
    "a device function whose result nobody wants": f"{FUNCTION}{HEAD}char s[30000]{USE[:-2]} f(i); }} {LAUNCH}",
    "a pointer whose reader's result nobody wants": "__device__ int sum(const char* p, int n)"
    "{ int total = 0; for (int j = 0; j < n; ++j) { total += p[j]; __syncthreads(); } return total; }"
    f"{HEAD}char s[60000]; s[threadIdx.x] = i; __syncthreads(); sum(s, i); }} {LAUNCH}",
    "dynamic": f"{HEAD[:-11]} extern __shared__ char s[]; __shared__ char t[49152]; t[threadIdx.x] = 1{USE} "
    "void launch(char* out) { k<<<1, 64, 99999>>>(out, 1); }",
    "single elements": f"{HEAD}char s[60000]; s[0] = i; __syncthreads(); out[i] = s[0]; }} {LAUNCH}",
    "a scratch of CUB's, larger here": "#include <cub/cub.cuh>\n"
    "__global__ void k(double* out, int i) { using Reduce = cub::BlockReduce<double, 1024>;"
    "__shared__ Reduce::TempStorage scratch[7]; for (int j = 0; j < i; ++j) out[j] = Reduce(scratch[j]).Sum(i + j); }"
    "void launch(double* out) { k<<<1, 1024>>>(out, 7); }",
}


def verdict(cpu_builder: Builder, source: str) -> tuple[str, str]:
    source = f"#include <torch/extension.h>\n{source}\nint run(int x) {{ return x; }}\n"
    request = load_inline("sample", "int run(int x);", source, functions=["run"])
    result = cpu_builder.build(request)
    return result.status, result.message


@pytest.mark.parametrize("name", REFUSED)
def test_too_much_static_shared_memory_is_the_candidates_error(cpu_builder: Builder, name: str) -> None:
    source, size = REFUSED[name]
    status, message = verdict(cpu_builder, source)
    assert status == "compile_error"
    assert "error: kernel k" in message
    assert f"has {size} bytes of static shared memory, 49152 are the most" in message


@pytest.mark.parametrize("name", BUILT)
def test_what_ptxas_does_not_count_is_built(cpu_builder: Builder, name: str) -> None:
    status, message = verdict(cpu_builder, BUILT[name])
    assert status == "built", message


def test_many_arrays_in_one_scope_are_read_in_time() -> None:
    declared = "".join(f"__shared__ int a{i}; " for i in range(20_000))
    tokens = tokenize(f"void f() {{ {{ {declared} a3[i] = 1; b = a3[i]; }} c[i] = c[j]; __shared__ int d; b = d[i]; }}")
    started = time.process_time()
    assert used_arrays(tokens) == {"a3", "d"}
    assert time.process_time() - started < 5


def said_by_nvcc(folder: Path, sources: Sequence[str]) -> tuple[int, str]:
    """nvcc's exit status and what it prints about `sources` in one file, each in a namespace (case_a, case_b, ...)."""
    cub = "#include <cub/cub.cuh>\n"  # its block reduction alone costs a third, and must stand outside the namespaces
    parts = [f"namespace case_{chr(97 + i)} {{\n{source.replace(cub, '')}\n}}\n" for i, source in enumerate(sources)]
    head = "#include <cub/block/block_reduce.cuh>\n" if any(cub in source for source in sources) else ""
    (folder / "k.cu").write_text(head + "".join(parts))
    command = [NVCC, "-arch=sm_90", "-c", "k.cu", "-o", "k.o"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@needs_nvcc
def test_nvcc_refuses_the_same(tmp_path: Path) -> None:
    _, message = said_by_nvcc(tmp_path, [source for source, _ in REFUSED.values()])
    found = re.findall(r"N6case_([a-z])\d+k\w*' uses too much shared data \((\w+) bytes", message)
    sizes = {letter: int(size, 16) for letter, size in found}
    names = {name: sizes.get(chr(97 + i)) for i, name in enumerate(REFUSED)}
    assert names == {name: size for name, (_, size) in REFUSED.items()}


@needs_nvcc
def test_nvcc_builds_the_same(tmp_path: Path) -> None:
    status, message = said_by_nvcc(tmp_path, list(BUILT.values()))
    assert status == 0, message
