"""The standing audit: does a fast build equal the stock build of the same source?"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from dice.kernels.builder.outcome import Built
from dice.kernels.records.extension import BuildResult

_COMPARED = re.compile(r"^\.(?:text|nv\.constant\d*|nv\.shared)\.")


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
    """Comparisons so far; the caller prints `alarms`."""

    share: float = 0.0
    findings: list[AuditFinding] = field(default_factory=list)

    def add(self, finding: AuditFinding) -> None:
        """Record one comparison."""
        self.findings.append(finding)

    @property
    def alarms(self) -> list[str]:
        """One sentence for each build that differs from stock's."""
        return [f"build {f.key[:16]}: {difference}" for f in self.findings for difference in f.differences]


def compare_with_stock(
    key: str, result: BuildResult, built: Built | None, stock: Built | None, work: Path, stock_cpu_seconds: float
) -> AuditFinding:
    """Compare status, and the machine code of each kernel where both built. `stock` is None when stock refused it."""
    differences: list[str] = []
    kernels = identical = 0
    if (built is None) != (stock is None):
        verdicts = ("built" if built else "refused", "built" if stock else "refused")
        differences.append(f"{result.route} {verdicts[0]} it and stock {verdicts[1]} it")
    elif built is not None and stock is not None:
        ours, theirs = kernel_code(built.path, work / "ours"), kernel_code(stock.path, work / "theirs")
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


def kernel_code(shared_object: Path, folder: Path) -> dict[str, dict[str, bytes]]:
    """Kernel -> section -> content, of all cubins embedded in a shared object. Anonymous namespaces lose their hash."""
    folder.mkdir(parents=True, exist_ok=True)
    code: dict[str, dict[str, bytes]] = {}
    for i, cubin in enumerate(embedded_cubins(shared_object)):
        path = folder / f"{i}.cubin"
        path.write_bytes(cubin)
        for section in _sections(path):
            if not _COMPARED.match(section):
                continue
            prefix, kernel = section[1:].split(".", 1) if section.startswith(".text") else section[4:].split(".", 1)
            name = re.sub(r"\d+_GLOBAL__N__[0-9a-f]+_\d+_[\w]+_cu_[0-9a-f]{8}|12dice_unnamed", "(unnamed)", kernel)
            content = folder / "section"
            subprocess.run(
                ["objcopy", "-O", "binary", f"--only-section={section}", str(path), str(content)],
                check=False,
                capture_output=True,
            )
            code.setdefault(name, {})[prefix] = content.read_bytes() if content.exists() else b""
            content.unlink(missing_ok=True)
    return code


def embedded_cubins(shared_object: Path) -> list[bytes]:
    """ELF images for the GPU inside a shared object (uncompressed fatbins)."""
    data = shared_object.read_bytes()
    found = []
    position = data.find(b"\x7fELF", 4)
    while position >= 0:
        header = data[position : position + 64]
        machine = int.from_bytes(header[18:20], "little")
        if machine == 190:  # EM_CUDA
            table = int.from_bytes(header[40:48], "little")
            size, count = (int.from_bytes(header[i : i + 2], "little") for i in (58, 60))
            program = int.from_bytes(header[32:40], "little")
            program_size, programs = (int.from_bytes(header[i : i + 2], "little") for i in (54, 56))
            end = max(table + size * count, program + program_size * programs)
            found.append(data[position : position + end])
        position = data.find(b"\x7fELF", position + 4)
    return found


def _sections(path: Path) -> list[str]:
    done = subprocess.run(["objdump", "-h", "-w", str(path)], capture_output=True, text=True, check=False)
    return re.findall(r"^\s*\d+\s+(\S+)\s", done.stdout, re.MULTILINE)
