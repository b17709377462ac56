"""Which source files a stage depends on: the closure of its module's imports inside this package.

Snakemake reruns a rule when one of its parameters changes, and knows nothing of what a command imports. A rule therefore
has a digest of these files as a parameter, and editing a module reruns exactly the stages that can reach it. (As inputs
they would do the same, but Snakemake looks at each input of each job.) A module that only hands on names of others
(`dice.kernels.api`) is looked through: who takes a name from it depends on where that name comes from.

Reading every file takes a second, at each start of Snakemake: what was read is kept in `$XDG_CACHE_HOME/dice`, by the
files' contents.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dice.jsonl import write_text
from dice.manifest import sha256_file

PACKAGE = Path(__file__).resolve().parents[1]
MOST_KEPT = 5000
"""Files of which something is kept, from a dozen versions of the package, until all of it is read anew."""


@functools.cache
def _file_of(module: str, package: Path) -> Path | None:
    """Path of `dice.a.b`, as a module or as a package; None when there is no such file."""
    place = package.joinpath(*module.split(".")[1:])
    for file in (place.with_suffix(".py"), place / "__init__.py"):
        if file.is_file():
            return file
    return None


class _Read(NamedTuple):
    """What this module wants of a file; syntax trees of all files at once would cost Python's garbage collector seconds."""

    taken: dict[str, list[str]]
    """Module -> the names that the file takes from it; none where it imports the module itself."""
    handed_on: dict[str, str]
    """Name -> the module it comes from, for a file of nothing but imports and `__all__`; empty for any other."""


def _statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Statements and those inside them, but for what only a type checker reads. No expression imports anything."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            for part in ("body", "orelse", "finalbody", "handlers", "cases"):
                waiting.extend(getattr(node, part, ()))


def _assigned(node: ast.AST, name: str) -> ast.expr | None:
    """The value of a statement `name = value`; None for any other."""
    if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [name]:
        return node.value
    return None


def _handed_on(body: Iterable[ast.AST]) -> dict[str, str]:
    origins: dict[str, str] = {}
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module:
            origins.update({alias.asname or alias.name: node.module for alias in node.names})
        elif not (isinstance(node, ast.Expr) or _assigned(node, "__all__")):
            return {}
    return origins


_digest = functools.cache(sha256_file)


def kept_reads() -> Path:
    """Where what was read of files is kept; another place for other code that reads them."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "dice" / f"imports-{_digest(Path(__file__))[:12]}.json"


@functools.cache
def _kept() -> dict[str, list[Any]]:
    """Digest of a file -> the fields of its `_Read`."""
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(kept_reads().read_text(encoding="utf-8"))
        return found if isinstance(found, dict) and len(found) <= MOST_KEPT else {}
    return {}


@functools.cache
def _read(file: Path) -> _Read:
    if _digest(file) not in _kept():
        _kept()[_digest(file)] = list(_read_anew(file))
    return _Read(*_kept()[_digest(file)])


def _read_anew(file: Path) -> _Read:
    body = ast.parse(file.read_text(encoding="utf-8")).body
    taken: dict[str, set[str]] = {}
    for node in _statements(body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                taken.setdefault(alias.name, set())
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            taken.setdefault(node.module, set()).update(alias.name for alias in node.names)
    return _Read({module: sorted(names) for module, names in taken.items()}, _handed_on(body))


@functools.cache
def _imports(file: Path, package: Path) -> frozenset[str]:
    """Modules that a file imports, those looked through that only hand on names."""
    found: set[str] = set()
    for module, names in _read(file).taken.items():
        if module.split(".")[0] != "dice":
            continue
        source = _file_of(module, package)
        origins = _read(source).handed_on if source else {}
        if origins and names:
            found.update(origins.get(name, module) for name in names)
        else:
            found.update([module, *(f"{module}.{name}" for name in names)])
    return frozenset(found)


def stage_module(stage: str) -> str:
    """The module of `dice <stage>`, read from the table in dice.cli."""
    for node in ast.parse((PACKAGE / "cli.py").read_text(encoding="utf-8")).body:
        if value := _assigned(node, "STAGES"):
            return ast.literal_eval(value)[stage][0]
    raise KeyError(stage)


@functools.cache
def _data_files(file: Path) -> list[Path]:
    """C++ sources and templates beside a module whose text speaks of them (`csrc`, `.j2`)."""
    text = file.read_text(encoding="utf-8")
    found = [path for path in (file.parent / "csrc").rglob("*") if path.is_file()] if "csrc" in text else []
    return found + (sorted(file.parent.rglob("*.j2")) if ".j2" in text else [])


@functools.cache
def code_of(module: str, package: Path = PACKAGE) -> tuple[str, ...]:
    """Files that importing `module` can reach inside the package, sorted, with the C++ and templates that they read.

    Imports inside functions count. `dice.cli` imports stages by name and is reached by none.
    """
    files: set[Path] = set()
    known = len(_kept())
    waiting = [module]
    while waiting:
        parts = waiting.pop().split(".")
        for depth in range(1, len(parts) + 1):  # importing a.b.c runs a and a.b
            file = _file_of(".".join(parts[:depth]), package)
            if file is not None and file not in files:
                files.add(file)
                files.update(_data_files(file))
                waiting.extend(_imports(file, package))
    if len(_kept()) > known:
        with contextlib.suppress(OSError):  # a cache that cannot be written is none
            write_text(kept_reads(), json.dumps(_kept()))
    return tuple(str(path) for path in sorted(files))


def stage_code(stage: str) -> tuple[str, ...]:
    """Files that `dice <stage>` depends on."""
    return code_of(stage_module(stage))


@functools.cache
def code_digest(stage: str) -> str:
    """Twelve hexadecimal digits of those files: of their names inside the package and their contents, not of their times."""
    lines = [f"{Path(file).relative_to(PACKAGE)} {_digest(Path(file))}" for file in stage_code(stage)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]
