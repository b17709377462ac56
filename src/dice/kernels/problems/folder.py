"""Problems from a folder: KernelBench's layouts (arXiv 2502.10517), or plain problem files.

Problem code is parsed, never executed. Ids are logical, `level1/19_ReLU`: level, number and name without the file's
trailing underscores, whatever the layout and the order of the files. Text is read as KernelBench reads it (UTF-8, any
line ending becomes \\n), so a prompt made from a problem has one hash wherever the problem came from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from dice.errors import DiceError
from dice.jsonl import BadRow, RowError
from dice.kernels.problems.problem import Problem
from dice.python_scope import bindings_of
from dice.python_text import check_python

_REQUIRED = ("Model", "get_inputs", "get_init_inputs")
_FILE_NAME = re.compile(r"(?:level_?(?P<level>\d+)_(?:problem_)?)?(?P<number>\d+)(?:_(?P<name>.*))?")
_LEVEL_FOLDER = re.compile(r"level_?(\d+)")
_ROOTS = (".", "KernelBench", "src/KernelBench", "evaluation/KernelBench")


def load_problem_folder(
    folder: str | Path,
    *,
    version: str = "folder",
    levels: Sequence[int] | None = None,
    skipped: list[BadRow] | None = None,
) -> list[Problem]:
    """Problems of a folder: level folders (`level1/19_ReLU.py`, also below `KernelBench/`), or plain files.

    Of plain files the level is the one in the folder's or the file's name, otherwise 0 and the id is the file's stem.
    Where there are level folders, files beside them are not problems. `levels`: only these, each of which must be
    there. `skipped`: None refuses a folder with a bad problem; a list takes the bad ones. Raises DiceError.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DiceError(f"{folder}: no such folder; give one with level1/19_ReLU.py, ... or with problem files.")
    by_level = level_folders(folder)
    if by_level:
        missing = sorted(set(levels or by_level) - set(by_level))
        if missing:
            raise DiceError(f"{folder}: no folder for level {missing[0]} (there are: {sorted(by_level)}).")
        chosen = [(level, path) for level in sorted(levels or by_level) for path in _python_files(by_level[level])]
    else:
        own = _LEVEL_FOLDER.fullmatch(folder.resolve().name)
        chosen = [(int(own[1]) if own else None, path) for path in _python_files(folder)]
    if not chosen:
        raise DiceError(f"{folder}: no problem files (*.py) in it or in level folders below it.")
    problems = unique_problems(((path, _problem_of_file(path, level, version)) for level, path in chosen), skipped)
    return [problem for problem in problems if levels is None or problem.level in levels]


def check_problem(code: str) -> None:
    """Raises RowError unless `code` parses and defines Model, get_inputs and get_init_inputs at its top level."""
    tree = check_python(code, "code")
    defined = {found.name for node in tree.body for found in bindings_of(node)}
    missing = [name for name in _REQUIRED if name not in defined]
    if missing:
        raise RowError(f"does not define {' or '.join(missing)}")


def level_folders(source: Path) -> dict[int, Path]:
    """Level -> its folder, in any of KernelBench's layouts; empty where there is none."""
    for root in _ROOTS:
        found = sorted(path for path in (source / root).glob("level*") if path.is_dir())
        folders = {int(match[1]): path for path in found if (match := _LEVEL_FOLDER.fullmatch(path.name))}
        if folders:
            return folders
    return {}


def _python_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.py") if path.is_file() and path.name[0] not in "._")


def _problem_of_file(path: Path, level: int | None, version: str) -> Problem | BadRow:
    match = _FILE_NAME.fullmatch(path.stem)
    try:
        code = path.read_text(encoding="utf-8")
        if level is None and match is not None and match["level"]:
            level = int(match["level"])
        if level is None:  # a plain file: its stem is all the identity there is
            check_problem(code)
            number = int(match["number"]) if match else 0
            return Problem(id=path.stem, level=0, number=number, name=path.stem, code=code, version=version)
        return named_problem(path.stem, code, level, version)
    except (RowError, UnicodeDecodeError) as error:
        return BadRow(path=str(path), line=1, id=path.stem, reason=str(error))


def named_problem(stem: str, code: str, level: int, version: str) -> Problem:
    """The problem of a file called `stem` (`19_ReLU`). Raises RowError for another form of name, or a bad program."""
    match = _FILE_NAME.fullmatch(stem)
    if match is None:
        raise RowError("the file's name does not start with the problem's number (19_ReLU.py)")
    check_problem(code)
    number = int(match["number"])
    name = (match["name"] or "").rstrip("_")
    key = f"level{level}/{number}" + (f"_{name}" if name else "")
    return Problem(id=key, level=level, number=number, name=name, code=code, version=version)


def unique_problems(found: Iterable[tuple[Path, Problem | BadRow]], skipped: list[BadRow] | None) -> list[Problem]:
    """Apply the rule for bad rows; of two problems with one id or one number of a level the later one is bad."""
    problems: dict[str, Problem] = {}
    numbers: dict[tuple[int, int], Path] = {}
    bad: list[BadRow] = []
    for path, item in found:
        if isinstance(item, BadRow):
            bad.append(item)
        elif item.id in problems or (item.level and (item.level, item.number) in numbers):
            reason = f"level {item.level} has a problem {item.number} already"
            bad.append(BadRow(path=str(path), line=1, id=item.id, reason=reason))
        else:
            problems[item.id] = item
            numbers[item.level, item.number] = path
    if skipped is not None:
        skipped.extend(bad)
    elif bad:
        more = f"; {len(bad) - 1} more bad problems" if len(bad) > 1 else ""
        raise DiceError(f"{bad[0]}{more}. Correct or remove it.")
    return sorted(problems.values(), key=lambda problem: (problem.level, problem.number, problem.id))
