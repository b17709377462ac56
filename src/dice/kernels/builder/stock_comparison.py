"""The standing audit: does a fast build equal the stock build of the same source?"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from dice.kernels.builder.outcome import Built
from dice.kernels.records.extension import BuildResult

_COMPARED = re.compile(r"\.(text|nv\.constant\d*|nv\.shared)\.(.+)")


@dataclass(frozen=True)
class AuditFinding:
    """One comparison. `differences` is empty when the two builds agree."""

    key: str
    differences: tuple[str, ...]
    kernels: int
    identical_kernels: int
    stock_cpu_seconds: float


@dataclass
class Audit:
    """Comparisons so far."""

    share: float = 0.0
    findings: list[AuditFinding] = field(default_factory=list)

    def add(self, finding: AuditFinding) -> None:
        """Record one comparison; say on stderr what differs."""
        self.findings.append(finding)
        for difference in finding.differences:
            print(f"build {finding.key[:16]} is not stock's: {difference}", file=sys.stderr)


def compare_with_stock(
    key: str, result: BuildResult, built: Built | None, stock: Built | None, stock_cpu_seconds: float
) -> AuditFinding:
    """Compare status, and the machine code of each kernel where both built. `stock` is None when stock refused it."""
    differences: list[str] = []
    kernels = identical = 0
    if (built is None) != (stock is None):
        verdicts = ("built" if built else "refused", "built" if stock else "refused")
        differences.append(f"{result.route} {verdicts[0]} it and stock {verdicts[1]} it")
    elif built is not None and stock is not None:
        ours, theirs = kernel_code(built.path), kernel_code(stock.path)
        kernels = len(theirs)
        for name in sorted(theirs):
            if name not in ours:
                differences.append(f"kernel {name} is missing")
            elif _close(ours[name], theirs[name]):
                identical += 1
            else:
                differences.append(f"kernel {name} has other machine code")
    return AuditFinding(key, tuple(differences), kernels, identical, stock_cpu_seconds)


def _close(ours: dict[str, bytes], theirs: dict[str, bytes]) -> bool:
    """Equal but for the place of a kernel's tables in the constant bank, which unused variables of headers shift."""
    if ours == theirs:
        return True
    if ours.keys() != theirs.keys():
        return False
    differing = [name for name in ours if ours[name] != theirs[name]]
    return all(
        len(ours[name]) == len(theirs[name]) and sum(a != b for a, b in zip(ours[name], theirs[name], strict=True)) <= 2
        for name in differing
    )


def kernel_code(shared_object: Path) -> dict[str, dict[str, bytes]]:
    """Kernel -> section -> content, of all cubins embedded in a shared object. Anonymous namespaces lose their hash."""
    code: dict[str, dict[str, bytes]] = {}
    for cubin in embedded_cubins(shared_object.read_bytes()):
        for section in cubin.iter_sections():
            compared = _COMPARED.fullmatch(section.name)
            if compared is None:
                continue
            kind, kernel = compared.groups()
            code.setdefault(_without_hash(kernel), {})[kind] = section.data()
    return code


def _without_hash(kernel: str) -> str:
    """A mangled name whose anonymous namespace, nvcc's or ours, is only called so: nvcc's has the file's name and a hash."""
    kernel = kernel.replace("12dice_unnamed", "(unnamed)")
    while (found := re.search(r"(\d+)_GLOBAL__N__", kernel)) is not None:  # <length><identifier>
        kernel = f"{kernel[: found.start()]}(unnamed){kernel[found.end(1) + int(found[1]) :]}"
    return kernel


def embedded_cubins(data: bytes) -> Iterator[ELFFile]:
    """ELF images for the GPU inside a shared object (uncompressed fatbins)."""
    for match in re.finditer(rb"\x7fELF", data):
        with contextlib.suppress(ELFError):  # these four bytes may stand anywhere
            image = ELFFile(io.BytesIO(data[match.start() :]))
            if image["e_machine"] == "EM_CUDA":
                yield image
