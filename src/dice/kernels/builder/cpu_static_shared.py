"""Static `__shared__` memory: ptxas refuses a kernel with more than 48 KiB of it, g++ would build it.

    check_static_shared(work / "cuda.o", source, "cuda.cu")     # raises FinalRefusal: the candidate's own error

The object is asked, not the text, so sizes that depend on a template parameter or a macro are right, and what the compiler
drops (arrays that nobody reads, dead branches, device functions that no kernel calls) does not count, as with nvcc. Static
`__shared__` variables are the thread-local ones there (csrc/cpu/include/dice_cpu/device.h); a kernel has those that the
code of its launch refers to, inlined device functions included.

The sum is a lower bound, since what nvcc builds must not be refused. Left out is the padding between arrays, and what nvcc
may have dropped where g++ did not: arrays of which the source uses single elements, or which it does not read by name, and
those of device functions that return something (nobody may want it) or were not inlined.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from dice.kernels.builder.outcome import FinalRefusal
from dice.kernels.source.lexer import SplitRefused, Token, matching, tokenize

STATIC_SHARED_BYTES = 49152
"""The most that a kernel may have on any architecture; more must be `extern __shared__`."""

_LAUNCH = "_ZZN8dice_cpu6launchI"  # the lambdas in dice_cpu::launch<closure of one kernel>
_KERNEL = re.compile(r"dice_cpu::launch<(?:void )?(.*?)::\{lambda\(dice_cpu::Thread&\)")
_FUNCTION_NAME = re.compile(r"(\w+)(?:<.*>)?\(")
_VOID_FUNCTION = re.compile(r"\bvoid\s+(?:__\w+\s+)*(\w+)\s*\(")
# What has another size here than with nvcc, or may have.
_OTHER_SIZES = re.compile(r"\bTempStorage\b|\bcurandState|\b__CUDA_ARCH__\b")


def check_static_shared(
    object_file: Path, source: str, name: str, demangle: Callable[[Iterable[str]], list[str]]
) -> None:
    """Raise FinalRefusal when a kernel of the object certainly has more static shared memory than CUDA allows.

    source: the CUDA source, its own headers included; name: of its file, for the message. demangle: makes mangled names
    readable.
    """
    kernels = {kernel: sizes for kernel, sizes in _variables(object_file).items() if _is_too_much(sizes.values())}
    if not kernels or _OTHER_SIZES.search(source):
        return
    try:
        used = used_arrays(tokenize(source))
    except SplitRefused:
        return  # brackets that do not match in a macro: nothing is certain
    procedures = frozenset(_VOID_FUNCTION.findall(source))
    for kernel, sizes in kernels.items():
        readable = demangle(sizes)
        counted = [
            size
            for variable, size in zip(readable, sizes.values(), strict=True)
            if variable.rpartition("::")[2].partition(".")[0] in used and _is_in_kernel(variable, procedures)
        ]
        if _is_too_much(counted):
            match = _KERNEL.search(demangle([kernel])[0])
            message = f"kernel {match.group(1) if match else kernel} has {sum(counted)} bytes of static shared memory"
            raise FinalRefusal(f"{name}: error: {message}, {STATIC_SHARED_BYTES} are the most", "a rule of CUDA")


def _is_too_much(sizes: Iterable[int]) -> bool:
    return sum(sizes) > STATIC_SHARED_BYTES


def _is_in_kernel(variable: str, procedures: frozenset[str]) -> bool:
    """Whether a variable, by its readable name, is a kernel's, a void function's or none's (at namespace scope)."""
    function = _FUNCTION_NAME.search(variable)
    return function is None or "::dice_body::" in variable or function.group(1) in procedures


def used_arrays(tokens: Sequence[Token]) -> set[str]:
    """Names that, where a shared variable is in scope or in a macro, are indexed by more than numbers, and read."""
    varying, read = set[str](), set[str]()
    seen = 0  # up to here the scopes of shared variables were looked through

    def look(tokens: Sequence[Token], i: int) -> None:
        end, varies = _indices(tokens, i + 1)
        if varies:
            varying.add(tokens[i].text)
        if end > i + 1 and (end == len(tokens) or tokens[end].text != "="):
            read.add(tokens[i].text)

    for start, token in enumerate(tokens):
        if token.kind == "directive":
            inner = tokenize(token.text, directives=False)
            for i in range(len(inner)):
                look(inner, i)
        elif token.text == "__shared__" and start >= seen:
            depth, declares = 0, True
            for i in range(start, len(tokens)):
                seen = i + 1
                word = tokens[i].text
                depth += (word == "{") - (word == "}")
                if depth < 0:
                    break
                if word in ("__shared__", ";"):
                    declares = word == "__shared__"
                elif not declares:
                    look(tokens, i)
    return varying & read


def _indices(tokens: Sequence[Token], i: int) -> tuple[int, bool]:
    """End of the members and indices (`[0].part[k]`) that begin at tokens[i]; whether one is more than a number."""
    varies = False
    while i < len(tokens) and tokens[i].text in (".", "["):
        end = i + 1
        if tokens[i].text == "[":
            end = matching(tokens, i)
            varies = varies or any(token.kind == "identifier" for token in tokens[i:end])
        i = end + 1
    return i, varies


def _variables(object_file: Path) -> dict[str, dict[str, int]]:
    """Sizes of the thread-local variables that a kernel's code refers to, by mangled names of kernel and variable.

    Empty when all together are not too much.
    """
    with object_file.open("rb") as stream:
        elf = ELFFile(stream)
        sections = list(elf.iter_sections())
        if not _is_too_much(section["sh_size"] for section in sections if section["sh_flags"] & SH_FLAGS.SHF_TLS):
            return {}
        table = next(section for section in sections if isinstance(section, SymbolTableSection))
        symbols = list(table.iter_symbols())
        variables = {i: symbol for i, symbol in enumerate(symbols) if symbol["st_info"]["type"] == "STT_TLS"}
        launches = [symbol for symbol in symbols if symbol.name.startswith(_LAUNCH)]
        found: dict[str, dict[str, int]] = {}
        for section in sections:
            bodies = [launch for launch in launches if launch["st_shndx"] == section["sh_info"]]
            if not bodies or not isinstance(section, RelocationSection):
                continue
            for relocation in section.iter_relocations():
                variable = variables.get(relocation["r_info_sym"])
                for body in bodies:
                    offset = relocation["r_offset"] - body["st_value"]
                    if variable is not None and 0 <= offset < body["st_size"]:
                        # GCC splits functions: what follows a full stop names the part.
                        found.setdefault(body.name.partition(".")[0], {})[variable.name] = variable["st_size"]
    return found
