"""Compilers, PyTorch's flags for them, and the fingerprint. PyTorch itself is the reference."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch.utils.cpp_extension as extension

from dice.errors import DiceError, HarnessError
from dice.kernels.builder.toolchain import Toolchain


def with_facts(toolchain: Toolchain, kind: str, **facts: str) -> Toolchain:
    return replace(toolchain, facts=toolchain.facts | {kind: toolchain.facts[kind] | facts})


def test_flags_are_pytorchs_without_the_extensions_name(cpu_toolchain: Toolchain) -> None:
    flags = cpu_toolchain.cxx_flags("cpp")
    folders = [flags[i + 1] for i, flag in enumerate(flags) if flag == "-isystem"]
    assert set(extension.include_paths()) <= set(folders)
    assert cpu_toolchain.include_flags == [word for folder in folders for word in ("-isystem", folder)]
    assert not any("TORCH_EXTENSION_NAME" in flag for flag in flags)
    assert cpu_toolchain.standard in flags


def test_the_flags_compile_what_includes_pytorch(cpu_toolchain: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text("#include <c10/core/ScalarType.h>\n#include <Python.h>\nauto a = c10::kHalf;\n")
    command = [cpu_toolchain.cxx, *cpu_toolchain.cxx_flags("cpp"), "-fsyntax-only", "a.cpp"]
    subprocess.run(command, cwd=tmp_path, check=True)


def test_only_libraries_that_this_pytorch_has_are_linked(cpu_toolchain: Toolchain) -> None:
    libraries = cpu_toolchain.torch_root / "lib"
    tools = with_facts(cpu_toolchain, "cpp", ldflags=f"-shared -L{libraries} -lc10 -lc10_cuda -ltorch_cuda -ltorch")
    there = [f"-l{name}" for name in ("c10_cuda", "torch_cuda") if (libraries / f"lib{name}.so").exists()]
    assert tools.link_flags("cpp") == ["-shared", f"-L{libraries}", "-lc10", *there, "-ltorch"]


def test_nvccs_flags_have_neither_architecture_nor_standard(cuda_toolchain: Toolchain) -> None:
    tools = with_facts(
        cuda_toolchain,
        "cuda",
        cuda_cflags="-DTORCH_EXTENSION_NAME=DICE_EXTENSION_NAME -D__CUDA_NO_HALF_OPERATORS__ --expt-relaxed-constexpr "
        "-gencode=arch=compute_90,code=sm_90 -isystem /home/research/cuda -DSEARCH=arch "
        "--compiler-options '-fPIC' -std=c++20",
    )
    expected = ["-D__CUDA_NO_HALF_OPERATORS__", "--expt-relaxed-constexpr"]
    expected += ["-isystem", "/home/research/cuda", "-DSEARCH=arch", "--compiler-options", "-fPIC"]
    assert tools.nvcc_flags == expected
    assert tools.half_macros == ["__CUDA_NO_HALF_OPERATORS__"]


@pytest.mark.parametrize(("arches", "expected"), [((), ""), (("9.0",), "9.0+PTX"), (("8.0", "9.0"), "8.0;9.0+PTX")])
def test_stock_is_told_the_same_gpus(cpu_toolchain: Toolchain, arches: tuple[str, ...], expected: str) -> None:
    assert replace(cpu_toolchain, arches=arches).arch_list == expected


@pytest.mark.parametrize(
    "change",
    [
        {"backend": "cuda"},
        {"arches": ("9.0",)},
        {"versions": {"cxx": "another g++"}},
        {"facts": {"torch_version": "another"}},
    ],
    ids=str,
)
def test_the_fingerprint_changes_with_whatever_comes_from_outside(
    cpu_toolchain: Toolchain, change: dict[str, Any]
) -> None:
    assert replace(cpu_toolchain, **change).fingerprint != cpu_toolchain.fingerprint
    assert replace(cpu_toolchain).fingerprint == cpu_toolchain.fingerprint


def test_back_ends_share_what_comes_from_the_host_compiler_and_pytorch_alone(
    cpu_toolchain: Toolchain, cuda_toolchain: Toolchain
) -> None:
    shared = cpu_toolchain.host_fingerprint
    assert cuda_toolchain.host_fingerprint == shared
    assert cuda_toolchain.cxx_flags("cpp") == cpu_toolchain.cxx_flags("cpp")
    assert replace(cpu_toolchain, versions={"cxx": "another g++"}).host_fingerprint != shared
    facts = cpu_toolchain.facts
    for change in ({"torch_version": "another"}, {"cpp": facts["cpp"] | {"cflags": "-O3"}}):
        assert replace(cpu_toolchain, facts=facts | change).host_fingerprint != shared


def test_the_answer_of_pytorch_is_kept(cpu_toolchain: Toolchain, build_folder: Path) -> None:
    again = Toolchain.find("cpu", None, build_folder)
    assert again == cpu_toolchain
    assert list((build_folder / "probes").glob("*.json"))


def test_another_environment_asks_anew(
    cpu_toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "g++")
    found = Toolchain.find("cpu", None, tmp_path)
    assert (found.cxx, cpu_toolchain.cxx) == ("g++", "c++")


@pytest.mark.parametrize("arch", ["9", "90", "sm_90", "9.0.0", ""])
def test_an_architecture_is_a_compute_capability(cuda_toolchain: Toolchain, build_folder: Path, arch: str) -> None:
    with pytest.raises(DiceError, match="compute capability"):
        Toolchain.find("cuda", arch, build_folder)


def test_a_machine_without_a_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(HarnessError, match="no C\\+\\+ compiler: 'no-such-compiler'"):
        Toolchain.find("cpu", None, tmp_path)
