"""The comparison with stock's build sees what differs in a kernel, and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from nvcc import NVCC, needs_nvcc

from dice.kernels.builder.outcome import Built
from dice.kernels.builder.stock_comparison import Audit, compare_with_stock, kernel_code, same_but_moved
from dice.kernels.records.extension import BuildResult

SOURCE = """
namespace { __global__ void reverse(float* x) {
    __shared__ float s[SHARED]; s[threadIdx.x] = x[threadIdx.x]; __syncthreads(); x[threadIdx.x] = s[63 - threadIdx.x]; } }
template <int N> __global__ void scale(float* x) { x[threadIdx.x] *= N; }
extern "C" void launch(float* x) { reverse<<<1, 64>>>(x); scale<FACTOR><<<1, 64>>>(x); }
"""
RESULT = BuildResult(status="built", key="k", route="split")


def built(folder: Path, name: str, source: str, shared: int = 64, factor: int = 3) -> Built:
    """A shared object of `source`, from a file of that name."""
    (folder / f"{name}.cu").write_text(source)
    command = [str(NVCC), "-shared", "-Xcompiler", "-fPIC", "--no-compress", "-arch=sm_90", f"-DSHARED={shared}"]
    subprocess.run([*command, f"-DFACTOR={factor}", "-o", f"{name}.so", f"{name}.cu"], cwd=folder, check=True)
    return Built(folder / f"{name}.so", "split", "counted")


@needs_nvcc
def test_kernels_of_an_object_and_their_code(tmp_path: Path) -> None:
    """The independent reference is nvcc's own cubin: it holds each section's bytes as they are."""
    code = kernel_code(built(tmp_path, "k", SOURCE).path)
    subprocess.run([str(NVCC), "-cubin", "-arch=sm_90", "-DSHARED=64", "-DFACTOR=3", "k.cu"], cwd=tmp_path, check=True)
    cubin = (tmp_path / "k.cubin").read_bytes()
    scale = code["_Z5scaleILi3EEvPf"]
    assert len(scale["text"]) >= 128
    assert scale["text"] in cubin
    (reverse,) = (name for name in code if "reverse" in name)
    assert "(unnamed)" in reverse
    assert code[reverse]["nv.shared"].strip(b"\0") == b""
    assert len(code[reverse]["nv.shared"]) >= 64 * 4


@needs_nvcc
def test_equal_kernels_agree_and_each_difference_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = built(tmp_path, "first", SOURCE)

    def differences(other: Built | None) -> tuple[str, ...]:
        finding = compare_with_stock("key", RESULT, first, other)
        audit = Audit()
        audit.add(finding)
        told = capsys.readouterr().err
        assert [told.count(difference) for difference in finding.differences] == [1] * len(finding.differences)
        assert audit.findings == [finding]
        assert finding.kernels == 0 or finding.kernels > finding.identical_kernels or not finding.differences
        return finding.differences

    assert differences(built(tmp_path, "second", f"// a comment, and another file name\n{SOURCE}")) == ()
    more = built(tmp_path, "third", SOURCE.replace("s[63", "x[0] * s[63"))
    (changed,) = differences(more)
    assert "reverse" in changed
    assert "other machine code" in changed
    (shared,) = differences(built(tmp_path, "fourth", SOURCE, shared=128))
    assert "reverse" in shared
    (missing,) = differences(built(tmp_path, "fifth", SOURCE, factor=4))
    assert missing == "kernel _Z5scaleILi4EEvPf is missing"
    assert differences(None) == ("split built it and stock refused it",)


VARIABLES = """
#ifdef HEADERS
__device__ double before[5];
__constant__ int more[6];
__global__ void other(double* x) { x[0] = before[threadIdx.x] + more[threadIdx.x]; }
#endif
__constant__ float weights[4];
__device__ int count;
__global__ void k(float* x) {
    x[0] = FACTOR * weights[FIRST] + weights[2] + weights[threadIdx.x & 3]; atomicAdd(&count, 1); printf("%d", count);
}
"""


@needs_nvcc
@pytest.mark.parametrize(
    ("flags", "same"),
    [
        (["-DFACTOR=3.f", "-DFIRST=1"], True),
        (["-DFACTOR=3.f", "-DFIRST=1", "-DHEADERS"], True),  # as if PyTorch's headers had variables
        (["-DFACTOR=5.f", "-DFIRST=1"], False),  # one byte of one instruction
        (["-DFACTOR=5.f", "-DFIRST=1", "-DHEADERS"], False),
        (["-DFACTOR=3.f", "-DFIRST=0"], False),  # one variable elsewhere, and not its neighbours
    ],
)
def test_only_a_move_of_all_variables_is_no_difference(tmp_path: Path, flags: list[str], same: bool) -> None:
    texts = []
    for name, words in (("ours", ["-DFACTOR=3.f", "-DFIRST=1"]), ("theirs", flags)):
        (tmp_path / f"{name}.cu").write_text(VARIABLES)
        subprocess.run([str(NVCC), "-cubin", "-arch=sm_90", *words, f"{name}.cu"], cwd=tmp_path, check=True)
        with (tmp_path / f"{name}.cubin").open("rb") as stream:
            section = ELFFile(stream).get_section_by_name(".text._Z1kPf")
            assert section is not None
            texts.append(section.data())
    assert (texts[0] == texts[1]) == (flags == ["-DFACTOR=3.f", "-DFIRST=1"])
    assert same_but_moved(*texts) == same
