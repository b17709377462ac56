"""Which objects may launch kernels that nobody counts, on objects made by gcc."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dice.kernels.builder.launch_symbols import imported_functions, uncounted_launches


def made(folder: Path, source: str) -> Path:
    (folder / "x.c").write_text(source)
    subprocess.run(["gcc", "-shared", "-fPIC", "x.c", "-o", "x.so"], cwd=folder, check=True)
    return folder / "x.so"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("int twice(int x) { return 2 * x; }", "none"),
        ("int cudaLaunchKernel(void); int run(void) { return cudaLaunchKernel(); }", "unknown"),
        ("int cuLaunchKernelEx(void); int run(void) { return cuLaunchKernelEx(); }", "unknown"),
        ("int __cudaLaunchKernel(void); int run(void) { return __cudaLaunchKernel(); }", "unknown"),
        ("int cudaGraphLaunch(void); int run(void) { return cudaGraphLaunch(); }", "unknown"),
        ('const char* name = "cudaLaunchKernel";', "none"),
        ("int cudaLaunchKernel(void) { return 0; }", "none"),
        ("int cudaGetDevice(void); int run(void) { return cudaGetDevice(); }", "none"),
    ],
)
def test_only_an_imported_launch_makes_launches_unknown(tmp_path, source, expected):
    assert uncounted_launches(made(tmp_path, source)) == expected


def test_imports_are_what_nm_lists(tmp_path):
    path = made(tmp_path, "int puts(const char*); int other(void); int run(void) { return puts(0) + other(); }")
    listed = subprocess.run(["nm", "-D", "-u", str(path)], capture_output=True, text=True, check=True).stdout
    assert {name.split("@")[0] for name in listed.split() if len(name) > 1} == set(imported_functions(path) or ())


@pytest.mark.parametrize(
    "damage", [lambda data: data[:40], lambda data: b"", lambda data: data[:40] + b"\xff" * 8 + data[48:]]
)
def test_an_object_that_cannot_be_read_may_launch(tmp_path, damage):
    path = made(tmp_path, "int f() { return 1; }")
    path.write_bytes(damage(path.read_bytes()))
    assert imported_functions(path) is None
    assert uncounted_launches(path) == "unknown"
