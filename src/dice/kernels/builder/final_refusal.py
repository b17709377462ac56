"""When a failure of a fast route is the candidate's own: stock would refuse it too.

The units of the fast routes lack what stock's compiler sees: the device unit has no header of PyTorch and nothing of the
host's code, the host unit (g++) nothing that only nvcc declares. So an error is final where it stands in the candidate's
own text, on lines that name nothing which the unit lacks (`Vocabulary` for headers, `left_out` for the candidate's own
code). Final, too, is what fails just as it does for stock: main.cpp with the untouched header, device code in ptxas.
Everything else is left to stock.

g++ with the untouched headers is expensive for the templates that it instantiates at the end of a unit. A declaration that
stops the compiler there (`STOP`) keeps these checks cheap.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from dice.kernels.builder.compiler import Workbench, first_error
from dice.kernels.builder.outcome import FinalRefusal
from dice.kernels.builder.precompiled import Precompiled
from dice.kernels.builder.split_roles import Roles
from dice.kernels.source.brackets import line_of_unpaired
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.diagnostics import Diagnostic, errors, read_gcc, read_nvcc
from dice.kernels.source.items import Item
from dice.kernels.source.lexer import SplitRefused

STOP = (
    '\n#line 1 "stop"\ntemplate <int N> struct DiceStop { static constexpr int value = DiceStop<N + 1>::value; };\n'
    'static_assert(DiceStop<0>::value == 0, "");\n'
)
NO_CPP = "not C++ in any reading"
NARROWING = "[-Wnarrowing]"
"""How g++ marks narrowing in braces. nvcc's front end refuses some that g++ warns of, and rewrites some that it refuses."""
_SYNTAX = re.compile(
    r"expected|not allowed here|unterminated|missing (?:terminating|closing)|stray|unrecognized token|extra text after|invalid (?:suffix|digit)"  # noqa: E501
)
_BUILT_IN_VARIABLES = (
    "extern const uint3 threadIdx, blockIdx;\nextern const dim3 blockDim, gridDim;\nextern const int warpSize;\n"
)
_LAUNCH = re.compile(r"<<<(?:(?!<<<)[^;{}])*?>>>")  # up to the next `<<<`: else each would be read to the end
_WORD = re.compile(r"(?<![\w.])(?<!->)(?<!\w::)[A-Za-z_]\w*")  # not a member, nor what a namespace qualifies
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
_INCLUDE = re.compile(r"[ \t]*#[ \t]*include")
_INCLUDED = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)
_TORCH_HEADER = re.compile(r"(torch|ATen|c10)/")
_WHICH_COMPILER = re.compile(r"\b__(CUDACC|NVCC|CUDA_ARCH|CUDABE)\w*")
_PYTHON_BINDINGS = ("PYBIND11_MODULE", "TORCH_LIBRARY", "TORCH_LIBRARY_IMPL", "TORCH_LIBRARY_FRAGMENT")


@dataclass
class FinalRefusals:
    """Which failures of one candidate's units are final: each check raises FinalRefusal for one that is.

    `source` names the .cu in `#line`s; its first line there is `first_line`. A check that compiles may also raise
    NotPrepared and OutOfLimits.
    """

    precompiled: Precompiled
    bench: Workbench
    source: str = "cuda.cu"
    first_line: int = 1

    def check_main(self, text: str, standard: Sequence[str], more: Sequence[str | Path]) -> None:
        """Compile main.cpp, its exact stock text, up to the headers' templates."""
        found, output = self._errors(text, "extension", "exact_main", standard, more)
        if any(d.file != "stop" for d in found):
            raise FinalRefusal(output, "main.cpp, exactly as stock compiles it")

    def check_host(self, unit: str, split: CudaSource, standard: Sequence[str], more: Sequence[str | Path]) -> None:
        """Compile the host unit with the untouched headers. Raises SplitRefused for an error that is not final."""
        found, output = self._errors(unit, "extension_cuda", "host_check", standard, more)
        found = [d for d in found if d.file != "stop"]
        if not found:
            return
        own = left_out(split, Roles(split).on_host)
        if own is not None and NARROWING not in found[0].text:
            self._check(found[0], split.text, self.precompiled.vocabulary().host_lacks | own, output, "host code")
        raise SplitRefused(f"host code: {first_error(output)}")

    def check_device(self, output: str, split: CudaSource, all_headers: bool) -> None:
        """Read what nvcc said of a device unit that it refuses. all_headers: it has `Vocabulary.device_headers`."""
        found = errors(read_nvcc(output)) or errors(read_gcc(output))
        if not found:
            if "nvcc fatal" in output:
                raise FinalRefusal(output, "flags that nvcc refuses")
            return
        if found[0].tool == "ptxas":
            raise FinalRefusal(output, "ptxas")
        vocabulary = self.precompiled.vocabulary()
        own = left_out(split, Roles(split).on_device)
        if own is not None and _included(split.text, _TORCH_HEADER) <= vocabulary.headers:
            lacks = own | (vocabulary.device_lacks if all_headers else vocabulary.bare_lacks)
            self._check(found[0], split.text, lacks, output, "device code")

    def check_unsplit(self, text: str, *, alone: bool) -> None:
        """Compile a .cu that cannot be split as plain C++, launches made calls, for an error of syntax.

        alone: no header, folder or macro of the candidate's own stands before it.
        """
        vocabulary = self.precompiled.vocabulary()
        unit = plain_unit(text, self.source, self.first_line)
        if unit is None or _WHICH_COMPILER.search(text) or not _included(text) <= vocabulary.headers:
            return

        def of_syntax(*flags: str) -> Diagnostic | None:
            found, _ = self._errors(unit, "extension_cuda", "unsplittable", more=flags)
            return next((d for d in found if is_syntax(d)), None)

        # The first error of syntax decides: an unknown type on an earlier line would have been one of its own. Most often
        # it is the first of all. Behind an open bracket g++ does not see `STOP`, and going on takes 16 s.
        first = of_syntax("-Wfatal-errors")
        if alone and first is None and (refusal := unpaired_bracket(text, self.source, self.first_line)) is not None:
            raise refusal
        first = first or of_syntax()
        if first is not None and first.file == "stop":
            raise FinalRefusal(f"{self.source}({self.first_line + text.count(chr(10))}): error: {first.text}", NO_CPP)
        if first is not None:
            lacks = vocabulary.host_lacks - set(_WORD.findall(_BUILT_IN_VARIABLES))
            self._check(first, text, lacks, f"{self.source}({first.line}): error: {first.text}", NO_CPP)

    def _check(self, error: Diagnostic, text: str, lacks: frozenset[str], message: str, rule: str) -> None:
        if error.file == self.source and is_final(error, text, error.line - self.first_line, lacks):
            raise FinalRefusal(message, rule)

    def _errors(
        self, text: str, header: str, name: str, standard: Sequence[str] = (), more: Sequence[str | Path] = ()
    ) -> tuple[list[Diagnostic], str]:
        """Errors and output of g++ with the header up to the end of `text`; behind that, in "stop", only of syntax."""
        done = self.precompiled.compile_host(
            self.bench,
            text + STOP,
            self.precompiled.header(header, standard),
            f"{name}.o",
            [*more, "-fsyntax-only", "-fmax-errors=50"],
        )
        found = errors(read_gcc(done.output))
        if any("precompiled header does not fit" in d.text for d in found):
            return [], done.output
        own = [d for d in found if "template instantiation depth" not in d.text]
        return [d for d in own if d.file != "stop" or is_syntax(d)], without_stop(done.output)


def is_final(error: Diagnostic, text: str, index: int, lacks: Set[str]) -> bool:
    """Whether line `index` (from 0) of the candidate's text, where the error stands, names none of `lacks`.

    For syntax the line before counts, too. Words of the source's own macros on the line do as well.
    """
    lines = text.split("\n")
    if not 0 <= index < len(lines):
        return False
    around = lines[max(0, index - 1) : index + 1] if is_syntax(error) else [lines[index]]
    words = {word for line in around if not _INCLUDE.match(line) for word in _WORD.findall(line)}
    return not _with_macros(words, text) & lacks


def left_out(split: CudaSource, here: Callable[[Item], bool]) -> frozenset[str] | None:
    """Names that the source declares or imports outside of one side's unit, which has the items that are `here`.

    None where the names cannot be told: using-directives, and macros that declare something.
    """
    names: set[str] = set()
    for item in split.items:
        if item.kind in ("include", "scope_open", "scope_close") or here(item):
            continue
        if item.kind == "macro_call" and item.name not in _PYTHON_BINDINGS:
            return None
        if item.kind == "using" and re.match(r"using\s+namespace\b", item.text):
            return None
        names |= item.identifiers if item.kind == "using" else item.declared
    return frozenset(names)


def _included(text: str, kind: re.Pattern[str] | None = None) -> set[str]:
    """Files that the source includes, or those of one kind."""
    return {name for name in _INCLUDED.findall(text) if kind is None or kind.match(name)}


def is_syntax(error: Diagnostic) -> bool:
    """Whether g++ complains of syntax, not of what a name means."""
    return _SYNTAX.search(error.text) is not None


def plain_unit(text: str, source: str, first_line: int = 1) -> str | None:
    """The .cu as written, launches made calls, for g++; None when one cannot be. `source`, `first_line`: for `#line`."""
    calls = _LAUNCH.sub(lambda match: "\n" * match.group().count("\n"), text)
    return None if "<<<" in calls else f'{_BUILT_IN_VARIABLES}#line {first_line} "{source}"\n{calls}'


def unpaired_bracket(text: str, source: str, first_line: int = 1) -> FinalRefusal | None:
    """The refusal of a text with a bracket that has no partner; None where all have one, or where that is not certain."""
    line = line_of_unpaired(text)
    if line is None:
        return None
    return FinalRefusal(f"{source}({first_line + line - 1}): error: a bracket here has no partner", NO_CPP)


def without_stop(output: str) -> str:
    """Compiler output up to where our own stop begins."""
    return re.split(r"^stop:", output, maxsplit=1, flags=re.MULTILINE)[0]


def _with_macros(words: set[str], text: str) -> set[str]:
    """`words`, with those of the source's own macros among them."""
    macros = {name: set(_WORD.findall(body)) for name, body in _MACRO.findall(text)}
    waiting, found = set(words), set()
    while waiting:
        word = waiting.pop()
        found.add(word)
        waiting |= macros.get(word, set()) - found
    return found
