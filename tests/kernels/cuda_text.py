"""Shared by the builder's tests: CUDA text read as the builder reads it, and g++ on what it makes of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from dice.kernels.builder.headers import CSRC
from dice.kernels.source.cuda_source import split_source

__all__ = ["compile_host", "run_host", "split_source"]

_RUNTIME = """
#pragma once
#define CUDART_VERSION 13000
struct dim3 { unsigned x, y, z; dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {} };
struct float4 { float x, y, z, w; };
typedef struct CUstream_st* cudaStream_t;
#define __host__
#define __device__
"""
_OBSERVER = """
#include "host.h"
#include <cstdio>
static const void* launched = nullptr;
static void** arguments = nullptr;
static void (*look)() = [] {};
extern "C" unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, CUstream_st* stream) {
  std::printf("<<<%u %u %u, %u %u %u, %zu, %zu>>>", grid.x, grid.y, grid.z, block.x, block.y, block.z, shared,
              (std::size_t)stream);
  return 0;
}
extern "C" void dice_launch(const void* host, void** given) { launched = host, arguments = given; look(); }
"""


def compile_host(unit: str, folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """g++ on a host unit in front of which stand the builder's own header and a CUDA runtime that only says what it is
    told. Makes `folder/unit`, or with `-c` an object of that name."""
    runtime = folder / "runtime"  # nvcc would take one that lies beside its source
    runtime.mkdir(exist_ok=True)
    (runtime / "cuda_runtime.h").write_text(_RUNTIME)
    (folder / "unit.cpp").write_text(f'{_OBSERVER}#line 1 "unit"\n{unit}')
    command = ["g++", "-std=c++17", "-O1", f"-I{runtime}", f"-I{CSRC / 'extension'}", "unit.cpp", "-o", "unit", *flags]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def run_host(unit: str, folder: Path) -> str:
    """What the program `unit` prints; `launched`, `arguments` and `look` are there for its `main`."""
    done = compile_host(unit, folder)
    assert done.returncode == 0, done.stderr
    return subprocess.run([folder / "unit"], capture_output=True, text=True, check=True).stdout
