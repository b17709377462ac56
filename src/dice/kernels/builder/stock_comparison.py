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
_VARIABLES, _ADDRESSES = 3, 4  # constant banks: __constant__ variables; addresses of other variables and of functions
_CONSTANT_FORMS = (3, 5)  # bits 9 to 11 of an instruction with an operand in a constant bank
_MOVE_IMMEDIATE = 0x802  # its bits 0 to 11


@dataclass(frozen=True)
class AuditFinding:
    """One comparison. `differences` is empty when the two builds agree."""

    key: str
    differences: tuple[str, ...]
    kernels: int
    identical_kernels: int


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


def compare_with_stock(key: str, result: BuildResult, built: Built | None, stock: Built | None) -> AuditFinding:
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
    return AuditFinding(key, tuple(differences), kernels, identical)


def _close(ours: dict[str, bytes], theirs: dict[str, bytes]) -> bool:
    """Equal but for where the variables of the source lie: unused variables of PyTorch's headers may lie before them."""
    if ours.keys() != theirs.keys():
        return False
    return all(
        ours[kind] == theirs[kind] or (kind == "text" and same_but_moved(ours[kind], theirs[kind])) for kind in ours
    )


def same_but_moved(ours: bytes, theirs: bytes) -> bool:
    """Whether two kernels differ only in where variables lie in the constant banks.

    Machine code of compute capability 7.0 and later: instructions of 16 bytes. An operand `c[bank][offset]` has the offset
    in bits 40 to 53, in units of 4 bytes, and the bank in bits 54 to 58; an offset for a register to add to is the
    immediate of a MOV, bits 32 to 63. All of bank 3 moves by one distance. Bank 4 is a table of addresses: each entry
    has one place here and one place there.
    """
    if len(ours) != len(theirs):
        return False
    places: dict[int, set[tuple[int, int]]] = {bank: set() for bank in (_VARIABLES, _ADDRESSES)}
    immediates: set[int] = set()
    for i in range(0, len(ours), 16):
        one, other = (int.from_bytes(code[i : i + 16], "little") for code in (ours, theirs))
        difference, bank = one ^ other, (one >> 54) & 0x1F
        names_bank = (one >> 9) & 7 in _CONSTANT_FORMS and bank in places
        if names_bank and difference & ~(0x3FFF << 40) == 0:
            places[bank].add((4 * ((one >> 40) & 0x3FFF), 4 * ((other >> 40) & 0x3FFF)))
        elif one & 0xFFF == _MOVE_IMMEDIATE and difference & ~(0xFFFFFFFF << 32) == 0:
            immediates.add(((other >> 32) & 0xFFFFFFFF) - ((one >> 32) & 0xFFFFFFFF))
        elif difference:
            return False
    distances = {bank: {there - here for here, there in pairs} for bank, pairs in places.items()}
    entries = places[_ADDRESSES]
    one_to_one = len(entries) == len({here for here, _ in entries}) == len({there for _, there in entries})
    return len(distances[_VARIABLES]) <= 1 and one_to_one and immediates - {0} <= set().union(*distances.values())


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
