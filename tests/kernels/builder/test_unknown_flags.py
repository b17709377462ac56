"""Flags that no source survives: this machine's g++ and PyTorch's headers say so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from extension_requests import inline

from dice.kernels.builder.compiler import Workbench
from dice.kernels.builder.flags import BuildFlags
from dice.kernels.builder.outcome import FinalRefusal
from dice.kernels.builder.toolchain import Toolchain
from dice.kernels.builder.unknown_flags import accepted_flags, check_standard
from dice.kernels.source.lexer import SplitRefused


def accepted(bench: Workbench, toolchain: Toolchain, *words: str, cuda: str | None = None) -> BuildFlags:
    flags = list(words)
    request = inline(extra_cflags=flags) if cuda is None else inline(cuda=cuda, extra_cuda_cflags=flags)
    return accepted_flags(request, toolchain, bench)


def test_flags_that_the_routes_know_reach_no_compiler(bench: Workbench, cpu_toolchain: Toolchain) -> None:
    tools = without_compilers(cpu_toolchain)
    assert accepted(bench, tools, "-O3").main == ["-O3"]


def test_a_flag_that_gxx_does_not_know_is_final(bench: Workbench, cpu_toolchain: Toolchain) -> None:
    with pytest.raises(FinalRefusal) as failure:
        accepted(bench, cpu_toolchain, "-fno-such-thing-anywhere")
    assert "-fno-such-thing-anywhere" in failure.value.message


def test_a_flag_that_gxx_knows_and_the_routes_do_not_is_left_to_stock(
    bench: Workbench, cpu_toolchain: Toolchain
) -> None:
    with pytest.raises(SplitRefused, match="-fno-rtti"):
        accepted(bench, cpu_toolchain, "-fno-rtti")


@pytest.mark.parametrize(
    ("word", "kind"), [("--no-such-flag", FinalRefusal), ("--device-debug", SplitRefused)], ids=["unknown", "known"]
)
def test_nvcc_is_asked_about_its_flags(
    bench: Workbench, cuda_toolchain: Toolchain, word: str, kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        accepted(bench, cuda_toolchain, word, cuda="int x;")


def test_a_standard_that_pytorchs_headers_refuse_is_final(bench: Workbench, cpu_toolchain: Toolchain) -> None:
    with pytest.raises(FinalRefusal, match="headers under -std=c\\+\\+14"):
        check_standard("-std=c++14", cpu_toolchain, bench)


def test_newer_standards_are_not_tried(bench: Workbench, cpu_toolchain: Toolchain) -> None:
    check_standard("-std=c++20", without_compilers(cpu_toolchain), bench)


def without_compilers(toolchain: Toolchain) -> Toolchain:
    """A call of the compiler would be a HarnessError."""
    return replace(toolchain, facts=toolchain.facts | {"cpp": toolchain.facts["cpp"] | {"cxx": "/no/such/compiler"}})
