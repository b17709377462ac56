"""The device side of a split source, compiled by nvcc and embedded, from the object that the host side became."""

from __future__ import annotations

import subprocess

import pytest
from cuda_text import compile_host, split_source
from extension_requests import inline

from dice.kernels.builder.compiler import Workbench
from dice.kernels.builder.device_build import DeviceBuild
from dice.kernels.builder.flags import BuildFlags
from dice.kernels.builder.host_unit import render_host
from dice.kernels.builder.precompiled import Precompiled
from dice.kernels.builder.request_sources import sources_of
from dice.kernels.builder.toolchain import Toolchain
from dice.kernels.source.lexer import SplitRefused

SOURCE = """
__constant__ float weights[4];
__global__ void k(float* x) { x[0] = weights[0]; }
template <typename T> __global__ void t(T* x) { x[1] = T(0); }
void run(float* x) { k<<<1, 1>>>(x); t<<<1, 1>>>(x); t<double><<<1, 1>>>(nullptr); }
"""


class Undecided:
    """Leaves open whether a failure is final."""

    def check_device(self, *_: object) -> None:
        return


@pytest.fixture
def build(cuda_toolchain: Toolchain, bench: Workbench) -> DeviceBuild:
    precompiled = Precompiled(cuda_toolchain, bench.folder / "precompiled", bench.meter.jail)
    return DeviceBuild(precompiled, Undecided(), bench)  # pyright: ignore[reportArgumentType]


def run(build: DeviceBuild, source: str, flags: BuildFlags | None = None, host: str | None = None) -> str:
    split = split_source(source)
    assert compile_host(host or render_host(split, "cuda.cu"), build.bench.folder, "-c").returncode == 0
    return build.run(split, sources_of(inline(cuda=source)), build.bench.folder / "unit", flags or BuildFlags())


def test_the_image_holds_each_kernel_that_the_host_launches(build: DeviceBuild) -> None:
    listed = subprocess.run(
        ["strings", "-a", build.bench.folder / run(build, SOURCE)], capture_output=True, text=True, check=True
    ).stdout
    assert {"_Z1kPf", "_Z1tIfEvPT_", "_Z1tIdEvPT_", "weights"} <= set(listed.split())
    assert b"\x7fELF" in (build.bench.folder / "image.fatbin").read_bytes()


def test_a_kernel_that_the_image_lacks_is_no_build(build: DeviceBuild) -> None:
    """A link would succeed, and every launch fail."""
    more = render_host(split_source(SOURCE + "__global__ void other(int n) { }"), "cuda.cu")
    with pytest.raises(SplitRefused, match="device code lacks _Z5otheri"):
        run(build, SOURCE, host=more)


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (["-arch=sm_90"], True),
        (["-gencode", "arch=compute_90,code=sm_90"], True),
        (["-arch=sm_80"], False),
        (["-gencode", "arch=compute_80,code=sm_90"], False),
        (["-gencode", "arch=compute_90,code=compute_90"], False),
        (["-gencode", "arch=compute_90,code=[sm_90,sm_80]"], False),
    ],
)
def test_other_architectures_are_left_to_stock(build: DeviceBuild, words: list[str], same: bool) -> None:
    flags = BuildFlags(architectures=words)
    if same:
        assert run(build, SOURCE, flags)
    else:
        with pytest.raises(SplitRefused, match="architecture"):
            run(build, SOURCE, flags)


def test_flags_reach_nvcc(build: DeviceBuild) -> None:
    source = "__global__ void k(float* x) { x[0] = VALUE; }\nvoid run() { k<<<1, 1>>>(nullptr); }"
    assert run(build, source, BuildFlags(device=["-DVALUE=3"]))
    with pytest.raises(SplitRefused, match="VALUE"):
        run(build, source)


def test_what_cannot_be_embedded_is_left_to_stock(build: DeviceBuild) -> None:
    """The names in it are a candidate's."""
    with pytest.raises(SplitRefused, match="fatbinary failed"):
        build._embed(["--image3=kind=elf,sm=90,file=missing.cubin"], [])
