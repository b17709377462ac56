"""When a failure of a fast route is the candidate's own: stock would refuse it too.

The fast routes leave headers out, so their errors prove nothing by themselves. A failure is certain when

- main.cpp fails with the same compiler, the same text and the untouched header (`exact_main`);
- the host side of the .cu fails with the untouched headers at a line of the candidate's, and the line names nothing
  that only nvcc declares (`host`);
- the device side fails in ptxas (same code), or with an undeclared name that occurs in no header at all, or at a line
  all of whose names mean the same with and without PyTorch's headers (`device`);
- nvcc (without PyTorch's headers) and g++ (with them, CUDA's keywords defined away) complain about the same line in
  the same way (`second_opinion`);
- the brackets of the text do not match (`unbalanced`).

Everything else is left to stock. All checks end before GCC instantiates the pending templates of the headers, which is
what makes units with the untouched headers dear: a last declaration stops the compiler (`STOP`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dice.kernels.builder.compiler import Meter, ToolLimits
from dice.kernels.builder.outcome import Certain, OutOfLimits
from dice.kernels.builder.precompiled import NotPrepared, Precompiled
from dice.kernels.builder.vocabulary import Vocabulary
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.diagnostics import Diagnostic, errors, read_gcc, read_nvcc
from dice.kernels.source.lexer import CLOSERS, OPENERS, SplitRefused, identifiers, read_tokens, tokenize, words

STOP = (
    '\n#line 1 "stop"\ntemplate <int N> struct DiceStop { static constexpr int value = DiceStop<N + 1>::value; };\n'
    'static_assert(DiceStop<0>::value == 0, "");\n'
)
SYNTAX = re.compile(
    r"expected|unterminated|missing (?:terminating|closing)|stray|unrecognized token|extra text after|invalid (?:suffix|digit)"  # noqa: E501
)
_MISSING_FILE = re.compile(r"([\w./+-]+): No such file or directory")
BUILT_IN_VARIABLES = (
    "extern const uint3 threadIdx, blockIdx;\nextern const dim3 blockDim, gridDim;\nextern const int warpSize;\n"
)
_DECLARED_BUILTINS = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"})
_MESSAGE_CHARACTERS = 8000


@dataclass
class Judge:
    """Judges failures of one candidate. `source` names the .cu in `#line`s; `first_line` is its first line there."""

    precompiled: Precompiled
    work: Path
    meter: Meter
    limits: ToolLimits
    deadline: float
    source: str = "cuda.cu"

    def exact_main(self, text: str, standard: Sequence[str], more: Sequence[str | Path]) -> str | None:
        """The diagnostics if main.cpp (its exact stock text) certainly fails; None when it may compile."""
        found = self._errors(text, "extension", "exact_main", standard, more)
        return None if found is None else found[1]

    def host(
        self, text: str, split: CudaSource, first_line: int, standard: Sequence[str], more: Sequence[str | Path]
    ) -> tuple[str, bool] | None:
        """(diagnostics, whether certain) of the host side with the untouched headers; None when it may compile.

        text: its unit, in which the source begins at `first_line`.
        """
        found = self._errors(text, "extension_cuda", "host_check", standard, more)
        if found is None:
            return None
        diagnostics, output = found
        first = diagnostics[0]
        if missing := _MISSING_FILE.search(first.text):
            return output, self._nowhere(missing.group(1), split)
        line = _line(split.text, first.line - first_line)
        if first.file != self.source or line is None:
            return output, False
        if first.undeclared in self._vocabulary.device_only:
            return output, True  # a __device__ function called from host code
        own = {item.name for item in split.items}
        if first.undeclared in {item.name for item in split.items if item.kind != "host_function"}:
            return output, False  # the host unit leaves device code out
        return output, not (identifiers_of(line) - own) & self._vocabulary.nvcc_only

    def _nowhere(self, name: str, split: CudaSource) -> bool:
        """Whether the header that g++ misses is included by the source and unknown to nvcc too."""
        include = self.precompiled.toolchain.cuda_home / "include"
        folders = [
            include,
            include / "cccl",
            *include.parent.glob("targets/*/include"),
            *include.parent.glob("targets/*/include/cccl"),
        ]
        return name in {item.name for item in split.of_kind("include")} and not any(
            (f / name).exists() for f in folders
        )

    def device(self, output: str, split: CudaSource, first_line: int) -> str | None:
        """The rule by which a failure of the device side is certain, or None. `output`: what nvcc said."""
        if "nvcc fatal" in output:
            return "flags that nvcc refuses"
        found = errors(read_nvcc(output))
        if not found:
            missing = [d for d in errors(read_gcc(output)) if "No such file or directory" in d.text]
            return "a header that does not exist" if missing and missing[0].file == self.source else None
        first = found[0]
        if first.tool == "ptxas":
            return "refused by ptxas"
        if "calling a __host__ function" in first.text and first.file == self.source:
            return "host code called from device code"
        if "is undefined in device code" in first.text and set(first.names) & {item.name for item in split.items}:
            return "a host variable used in device code"
        if first.file != self.source or _line(split.text, first.line - first_line) is None:
            return None
        if first.undeclared is not None:
            if first.undeclared not in self._vocabulary.torch_words:
                return "a name that no header declares"
        elif not self._may_mean_more(first, first.line - first_line, split):
            return "no name on the line comes from a header of PyTorch"
        return self.second_opinion(split.text, first, first_line)

    def _may_mean_more(self, first: Diagnostic, index: int, split: CudaSource) -> bool:
        """Whether PyTorch's headers could change what the line `index` (from 0) means; for syntax, the one before too."""
        start = max(0, index - 1) if SYNTAX.search(first.text) else index
        around = identifiers_of("\n".join(split.text.split("\n")[start : index + 1]))
        if _device_words(split) & self._vocabulary.torch_macros:
            return True
        foreign = around & self._vocabulary.torch_words - self._vocabulary.device_words
        return bool(foreign - _declared(split) - _KEYWORDS)

    def second_opinion(self, text: str, first: Diagnostic, first_line: int) -> str | None:
        """g++'s view of the whole .cu as host code, with the untouched headers: does it agree with `first`?"""
        for other in self._as_host_code(text, first_line):
            near = abs(other.line - first.line) <= 1
            if near and first.undeclared is not None and other.undeclared == first.undeclared:
                return "undeclared for nvcc, and for g++ with all headers"
            if near and first.undeclared is None and SYNTAX.search(first.text) and SYNTAX.search(other.text):
                return "a syntax error for nvcc, and for g++ with all headers"
        return None

    def unsplittable(self, text: str, first_line: int) -> str | None:
        """The diagnostics if a .cu that cannot be split is certainly not C++; None when it may be."""
        if unbalanced(text, self._vocabulary.unbalanced_macros):
            return "the brackets do not match"
        for diagnostic in self._as_host_code(text, first_line):
            if SYNTAX.search(diagnostic.text):
                return f"{diagnostic.file}:{diagnostic.line}: error: {diagnostic.text}"
        return None

    def _as_host_code(self, text: str, first_line: int) -> list[Diagnostic]:
        """Errors of g++ on lines that name nothing which only nvcc declares."""
        try:
            plain = CudaSource(text).with_launches(lambda launch: f"{launch.callee}({launch.arguments})")
        except SplitRefused:
            plain = re.sub(r"<<<[^;{}]*?>>>", lambda match: "\n" * match.group().count("\n"), text)
        if "<<<" in plain:
            return []
        lines = text.split("\n")
        unit = f'{BUILT_IN_VARIABLES}#line {first_line} "{self.source}"\n{plain}'
        found = self._errors(unit, "extension_cuda", "second_opinion")
        kept = []
        for diagnostic in found[0] if found is not None else []:
            index = diagnostic.line - first_line
            if diagnostic.file != self.source or not 0 <= index < len(lines):
                continue
            start = max(0, index - 1) if SYNTAX.search(diagnostic.text) else index
            around = identifiers_of("\n".join(lines[start : index + 1]))
            if not around & self._vocabulary.nvcc_only - _DECLARED_BUILTINS:
                kept.append(diagnostic)
        return kept

    @property
    def _vocabulary(self) -> Vocabulary:
        return self.precompiled.vocabulary()

    def _errors(
        self, text: str, header: str, name: str, standard: Sequence[str] = (), more: Sequence[str | Path] = ()
    ) -> tuple[list[Diagnostic], str] | None:
        """(errors, output) of g++ with the header up to the end of `text`; None when there are none.

        Raises NotPrepared.
        """
        precompiled = self.precompiled.header(header, standard)
        done = self.precompiled.compile_host(
            text + STOP,
            precompiled,
            f"{name}.o",
            self.work,
            self.meter,
            self.limits,
            deadline=self.deadline,
            flags=[*more, "-fsyntax-only", "-fmax-errors=50"],
        )
        if done.timed_out:
            raise OutOfLimits("timeout", "the compiler took too long")
        if done.out_of_memory:
            raise OutOfLimits("out_of_memory", "the compiler ran out of memory")
        found = [
            d
            for d in errors(read_gcc(done.output))
            if d.file != "stop" and "template instantiation depth" not in d.text
        ]
        if not found or any("precompiled header does not fit" in d.text for d in found):
            return None
        return found, without_stop(done.output)


def _line(text: str, index: int) -> str | None:
    lines = text.split("\n")
    return lines[index] if 0 <= index < len(lines) else None


def without_stop(output: str) -> str:
    """Compiler output up to where our own stop begins."""
    for mark in ("\nstop:", "stop: In instantiation", "stop:"):
        if mark in output:
            output = output.split(mark)[0]
    return output[:_MESSAGE_CHARACTERS]


def certain(message: str, rule: str) -> Certain:
    """A Certain with its message cut to size."""
    return Certain(message[:_MESSAGE_CHARACTERS], rule)


def unbalanced(text: str, unbalanced_macros: Iterable[str] = ()) -> bool:
    """Whether the brackets of a C++ text fail to match, whatever its headers say.

    False when macros could make up for it: its own ones with brackets, any of `unbalanced_macros`, or conditionals.
    """
    try:
        tokens = tokenize(text)
    except SplitRefused:
        return False
    for token in tokens:
        if token.kind == "directive" and re.match(r"#\s*(if|else|elif|define.*[{}()\[\]])", token.text, re.DOTALL):
            defined = re.match(r"#\s*define\s+\w+(?:\([^)]*\))?(.*)$", token.text, re.DOTALL)
            if defined is None or not _balanced(defined.group(1)):
                return False
    if {token.text for token in tokens if token.kind == "identifier"} & set(unbalanced_macros):
        return False
    return not _balanced(text)


def _balanced(text: str) -> bool:
    brackets = {*OPENERS, *CLOSERS}
    return all(
        token.kind != "unknown" and (token.reach or token.kind != "punctuator" or token.text not in brackets)
        for token in read_tokens(text)
    )


def identifiers_of(text: str) -> set[str]:
    """Identifiers of a few lines, which may begin or end inside a literal."""
    try:
        return identifiers(text)
    except SplitRefused:
        return set(re.findall(r"[A-Za-z_]\w*", text))


_DECLARATOR = re.compile(r"(?:[\w>*&]\s+|[*&]\s*)([A-Za-z_]\w*)\s*(?=[=;,)\[({:])")
_KEYWORDS = words(
    "alignas alignof asm auto bool break case catch char class const constexpr continue decltype default delete do "
    "double else enum explicit extern false float for friend goto if inline int long mutable namespace new noexcept "
    "nullptr operator private protected public register reinterpret_cast return short signed sizeof static "
    "static_assert static_cast struct switch template this throw true try typedef typename union unsigned using "
    "virtual void volatile while const_cast"
)


def _device_words(split: CudaSource) -> set[str]:
    """Words of the device code, and of the macros and types that it may use."""
    kinds = (
        "kernel",
        "kernel_declaration",
        "device_function",
        "host_device_function",
        "device_variable",
        "type",
        "constant",
    )
    words: set[str] = set()
    for item in split.items:
        if item.kind in kinds:
            words |= item.identifiers
    for item in split.of_kind("macro"):
        if item.name in words:
            words |= item.identifiers
    return words


def _declared(split: CudaSource) -> set[str]:
    """Names that the source declares itself, as far as the shape of the text tells."""
    names = {item.name for item in split.items}
    for item in split.items:
        if item.kind != "include":
            names.update(_DECLARATOR.findall(item.text))
            if item.function is not None:
                names.update(p.name for p in item.function.parameters if p.name)
                names.update(p.name for p in item.function.template_parameters if p.name)
    return names


__all__ = ["Judge", "NotPrepared", "certain", "identifiers_of", "unbalanced"]
