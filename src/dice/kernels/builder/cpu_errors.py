"""Whose failure is it when the CPU back end cannot build a source: the candidate's, or our translation's?

    own_error(text, ...)     # what g++ says against the source as it was written, if that is an error of C++ itself

The source goes to g++ untranslated: CUDA's keywords defined away by our headers, launches turned into calls. An error of
syntax there, before any other complaint, is the candidate's. So is a rule of CUDA that the text alone breaks
(`check_rules`), and a name that PyTorch's own CUDA headers would have to declare and do not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from dice.kernels.builder.compiler import ToolRun
from dice.kernels.builder.final_refusal import NO_CPP, STOP, is_syntax, plain_unit, unpaired_bracket, without_stop
from dice.kernels.builder.outcome import FinalRefusal, broken_rule
from dice.kernels.source.cuda_source import split_source
from dice.kernels.source.diagnostics import errors, read_gcc
from dice.kernels.source.host_rules import check_host_rules
from dice.kernels.source.lexer import Refuted, SplitRefused
from dice.kernels.source.macros import Preprocess

_INCLUDE_FOLDERS = ("ATen/cuda", "ATen/cudnn", "ATen/native/cuda", "c10/cuda", "torch/csrc/cuda")
_HEADERS = (".h", ".hpp", ".cuh")


def check_rules(text: str, name: str, preprocess: Preprocess | None = None) -> None:
    """Raise FinalRefusal when the .cu breaks a rule of CUDA that needs no compiler to see.

    `name`: of the file. `preprocess`: as for `split_source`.
    """
    try:
        check_host_rules(split_source(text, preprocess))
    except Refuted as refuted:
        raise broken_rule(refuted, name) from refuted
    except SplitRefused:
        return  # what the split cannot take says nothing here


def own_error(text: str, name: str, check: Callable[[str], ToolRun], *, alone: bool) -> FinalRefusal | None:
    """The candidate's own error in a .cu that could not be translated; None when that is not certain.

    check: runs g++ on a unit up to its first error, without making an object. alone: no header, folder or macro of the
    candidate's own stands before the text.
    """
    unit = plain_unit(text, name)
    if unit is None:
        return None
    whole = f"#include <dice_cpu/cuda_unit.h>\n#undef __shared__\n#define __shared__\n{unit}{STOP}"
    # The first error decides or none does. Behind an open bracket g++ does not see `STOP`: to go on would take 10 s.
    done = check(whole)
    first = next(iter(errors(read_gcc(done.output))), None)
    if first is not None and is_syntax(first):
        # An unknown attribute or macro looks like a broken declaration.
        foreign = any(re.match(r"__|[A-Z_]{3,}$", word) for word in first.names)
        if (first.file == name and not foreign) or (first.file == "stop" and "at end of input" in first.text):
            said = without_stop(done.output).strip() or f"{name}: error: the text ends inside a bracket"
            return FinalRefusal(said, NO_CPP)
    return unpaired_bracket(text, name) if alone else None


def declared_by_torch(name: str, include: Path) -> bool:
    """Whether PyTorch's CUDA headers below `include` mention a name; True where they are not installed."""
    folders = [include / folder for folder in _INCLUDE_FOLDERS if (include / folder).is_dir()]
    if not folders:
        return True
    word = re.compile(rf"\b{re.escape(name)}\b")
    headers = (path for folder in folders for path in folder.rglob("*") if path.suffix in _HEADERS)
    return any(word.search(path.read_text(errors="replace")) for path in headers)
