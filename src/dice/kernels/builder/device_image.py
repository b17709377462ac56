"""The device side of a build: symbols of stubs and cubins, and the assembly that embeds an image in the extension."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dice.kernels.builder.compiler import Workbench

_FUNCTION_NAME = re.compile(r"(?:void )?((?:\w+::)*\w+)")
_SECTIONS = {".text.dice_kernel": "kernel", ".dice_constant": "constant", ".dice_device": "device"}


@dataclass(frozen=True)
class Symbol:
    """A defined symbol of an object file. kind: `kernel`, `constant` or `device`; weak: a template instance."""

    name: str
    kind: str
    size: int
    weak: bool


def _symbols(bench: Workbench, object_file: Path) -> list[tuple[str, str, int, str]]:
    """(name, class, size, section) of each defined symbol."""
    rows = []
    for line in bench.capture(["nm", "-f", "sysv", "--defined-only", object_file], "dice_symbols").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 7:
            name, _, kind, _, size, _, section = cells
            rows.append((name, kind, int(size or "0", 16), section))
    return rows


def readable_names(bench: Workbench, names: Iterable[str]) -> list[str]:
    """Mangled names as C++ would write them."""
    names = list(names)
    if not names:
        return []
    (bench.folder / "dice_names").write_text("\n".join(names) + "\n", encoding="utf-8")
    return bench.capture(["/bin/sh", "-c", "exec c++filt < dice_names"], "dice_readable").splitlines()


def host_symbols(bench: Workbench, object_file: Path, kernel_templates: frozenset[str]) -> list[Symbol]:
    """Kernel stubs and shadows of device variables in a host object (sections of csrc/extension/host.h).

    Instances of templates lie in sections of their own; they are known by their qualified names, `kernel_templates`.
    """
    symbols: list[Symbol] = []
    weak: list[tuple[str, int]] = []
    for name, kind, size, section in _symbols(bench, object_file):
        if section in _SECTIONS and kind != "n":
            symbols.append(Symbol(name, _SECTIONS[section], size, weak=False))
        elif kind == "W" and section.startswith(".text"):
            weak.append((name, size))
    for (name, size), readable in zip(weak, readable_names(bench, (name for name, _ in weak)), strict=True):
        match = _FUNCTION_NAME.match(readable)
        if match and match.group(1) in kernel_templates:
            symbols.append(Symbol(name, "kernel", size, weak=True))
    return symbols


def image_symbols(bench: Workbench, cubin: Path) -> set[str]:
    """Names of kernels and variables that a cubin defines."""
    return {name for name, _, _, _ in _symbols(bench, cubin)}


def image_assembly(fatbin: str, symbols: Iterable[Symbol]) -> str:
    """GNU assembly that embeds the file `fatbin` and lists what csrc/extension/launch.cpp registers."""
    kernels = [symbol for symbol in symbols if symbol.kind == "kernel"]
    variables = [symbol for symbol in symbols if symbol.kind != "kernel"]
    strings = {symbol.name: f".Lname_{i}" for i, symbol in enumerate([*kernels, *variables])}
    lines = [
        '.section .nv_fatbin,"a",@progbits',
        ".balign 8",
        ".Limage:",
        f'.incbin "{fatbin}"',
        '.section .nvFatBinSegment,"aw",@progbits',
        ".balign 8",
        *_global("dice_image_wrapper"),
        ".long 0x466243b1",
        ".long 1",
        ".quad .Limage",
        ".quad 0",
        '.section .data.rel.local,"aw",@progbits',
        ".balign 8",
        *_global("dice_image_kernels"),
        *(f".quad {_quoted(k.name)}\n.quad {strings[k.name]}" for k in kernels),
        ".quad 0\n.quad 0",
        *_global("dice_image_variables"),
        *(
            f".quad {_quoted(v.name)}\n.quad {strings[v.name]}\n.quad {v.size}\n.quad {int(v.kind == 'constant')}"
            for v in variables
        ),
        ".quad 0\n.quad 0\n.quad 0\n.quad 0",
        '.section .rodata.str1.1,"aMS",@progbits,1',
        *(f'{label}:\n.asciz "{name}"' for name, label in strings.items()),
        '.section .note.GNU-stack,"",@progbits',
    ]
    return "\n".join(lines) + "\n"


def _global(name: str) -> list[str]:
    return [f".globl {name}", f".hidden {name}", f"{name}:"]


def _quoted(name: str) -> str:
    return f'"{name}"'
