"""Flags that make any build fail: the compilers do not know them (`--use_fast_math` for g++), or they ask for a C++ standard
that PyTorch's own headers refuse (`-std=c++14`)."""

from __future__ import annotations

import re

from dice.kernels.builder.compiler import Workbench
from dice.kernels.builder.flags import BuildFlags, read_flags, shell_words
from dice.kernels.builder.outcome import FinalRefusal
from dice.kernels.builder.request_sources import sources_of
from dice.kernels.builder.toolchain import Toolchain
from dice.kernels.records.extension import ExtensionRequest
from dice.kernels.source.lexer import SplitRefused

_OLD_STANDARDS = frozenset({"98", "03", "0x", "11", "1y", "14"})


def accepted_flags(request: ExtensionRequest, toolchain: Toolchain, bench: Workbench) -> BuildFlags:
    """The flags, sorted by who gets them (`read_flags`).

    Raises FinalRefusal when g++, or nvcc where the toolchain has it, does not know a flag; SplitRefused when only stock takes
    the flags.
    """
    try:
        return read_flags(request)
    except SplitRefused:
        _check_known(request, toolchain, bench)
        raise


def _check_known(request: ExtensionRequest, toolchain: Toolchain, bench: Workbench) -> None:
    sources = sources_of(request)
    (bench.folder / "flags.cu").write_text("")
    commands = []
    if sources.mains:
        commands.append([toolchain.cxx, "-x", "c++", "-fsyntax-only", *shell_words(request.extra_cflags), "flags.cu"])
    if sources.cuda is not None and toolchain.backend == "cuda":
        words = shell_words(request.extra_cuda_cflags)
        commands.append([toolchain.nvcc, *toolchain.nvcc_flags, *words, "--dryrun", "-c", "flags.cu", "-o", "flags.o"])
    for command in commands:
        done = bench.run(command)
        if not done.ok and re.search(r"nvcc fatal|unrecognized command-line option", done.output):
            raise FinalRefusal(done.output, "flags that the compilers refuse")


def check_standard(standard: str, toolchain: Toolchain, bench: Workbench) -> None:
    """Raise FinalRefusal when PyTorch's own header does not compile under `standard`, a -std flag."""
    if standard.removeprefix("-std=").removeprefix("c++").removeprefix("gnu++") not in _OLD_STANDARDS:
        return
    (bench.folder / "standard.cpp").write_text("#include <torch/types.h>\n")
    flags = [*toolchain.cxx_flags("cpp"), standard, "-Wfatal-errors", "-fsyntax-only"]
    done = bench.run([toolchain.cxx, *flags, "standard.cpp"])
    if not done.ok:
        raise FinalRefusal(done.output, f"PyTorch's headers under {standard}")
