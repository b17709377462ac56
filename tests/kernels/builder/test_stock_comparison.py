"""The comparison with stock's build sees what differs in a kernel, and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dice.kernels.builder.outcome import Built
from dice.kernels.builder.stock_comparison import Audit, compare_with_stock, kernel_code
from dice.kernels.builder.toolchain_probe import find_cuda_home
from dice.kernels.records.extension import BuildResult

NVCC = Path(find_cuda_home() or "", "bin", "nvcc")
needs_nvcc = pytest.mark.skipif(not NVCC.exists(), reason="needs nvcc")

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
    return Built(folder / f"{name}.so", "split", "table")


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
        finding = compare_with_stock("key", RESULT, first, other, 1.0)
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
