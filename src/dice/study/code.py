"""Which source files a stage depends on: the closure of its module's imports inside this package.

Snakemake reruns a rule when one of its parameters changes, and knows nothing of what a command imports. A rule therefore
has a digest of these files as a parameter, and editing a module reruns exactly the stages that can reach it. (As inputs
they would do the same, but Snakemake looks at each input of each job.) A module that only re-exports names
(`dice.kernels.api`) is left out: who imports a name from it depends on the module that the name comes from.

Parsing every file takes a second at each start of Snakemake, so the imports are cached in `$XDG_CACHE_HOME/dice`, by the
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
MOST_CACHED = 5000
"""Files in the cache, those of a dozen versions of the package; a cache with more is dropped."""


@functools.cache
def _file_of(module: str, package: Path) -> Path | None:
    """Path of `dice.a.b`, as a module or as a package; None when there is no such file."""
    place = package.joinpath(*module.split(".")[1:])
    for file in (place.with_suffix(".py"), place / "__init__.py"):
        if file.is_file():
            return file
    return None


class _Parsed(NamedTuple):
    """What is kept of a file; the syntax trees of all files at once would cost Python's garbage collector seconds."""

    imported: dict[str, list[str]]
    """Module -> the names that the file imports from it; none where it imports the module itself."""
    reexported: dict[str, str]
    """Name -> the module it comes from, for a file of nothing but imports and `__all__`; empty for any other."""


def _statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Statements and those inside them, without those that only a type checker reads. No expression imports anything."""
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


def _reexported(body: Iterable[ast.AST]) -> dict[str, str]:
    origins: dict[str, str] = {}
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module:
            origins.update({alias.asname or alias.name: node.module for alias in node.names})
        elif not (isinstance(node, ast.Expr) or _assigned(node, "__all__")):
            return {}
    return origins


_digest = functools.cache(sha256_file)


def cache_file() -> Path:
    """Where parsed files are cached; another file for another version of this module."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "dice" / f"imports-{_digest(Path(__file__))[:12]}.json"


@functools.cache
def _cache() -> dict[str, list[Any]]:
    """Digest of a file -> the fields of its `_Parsed`."""
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(cache_file().read_text(encoding="utf-8"))
        return found if isinstance(found, dict) and len(found) <= MOST_CACHED else {}
    return {}


@functools.cache
def _parsed(file: Path) -> _Parsed:
    if _digest(file) not in _cache():
        _cache()[_digest(file)] = list(_parse(file))
    return _Parsed(*_cache()[_digest(file)])


def _parse(file: Path) -> _Parsed:
    body = ast.parse(file.read_text(encoding="utf-8")).body
    imported: dict[str, set[str]] = {}
    for node in _statements(body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                imported.setdefault(alias.name, set())
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            imported.setdefault(node.module, set()).update(alias.name for alias in node.names)
    return _Parsed({module: sorted(names) for module, names in imported.items()}, _reexported(body))


@functools.cache
def _imports(file: Path, package: Path) -> frozenset[str]:
    """Modules that a file imports; for names that another module re-exports, the modules that they come from."""
    found: set[str] = set()
    for module, names in _parsed(file).imported.items():
        if module.split(".")[0] != "dice":
            continue
        source = _file_of(module, package)
        origins = _parsed(source).reexported if source else {}
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
    """What lies beside a module whose text names it: C++ sources (`csrc`), templates (`.j2`) with their style and script, and
    YAML by the file's name."""
    text = file.read_text(encoding="utf-8")
    found = [path for path in (file.parent / "csrc").rglob("*") if path.is_file()] if "csrc" in text else []
    if ".j2" in text:
        found += [path for kind in ("j2", "css", "js") for path in file.parent.rglob(f"*.{kind}")]
    return found + [path for path in file.parent.glob("*.yaml") if path.name in text]


@functools.cache
def code_of(module: str, package: Path = PACKAGE) -> tuple[str, ...]:
    """Files that importing `module` can reach inside the package, sorted, with the C++, templates and YAML that they read.

    Imports inside functions count. `dice.cli` imports stages by name and is reached by none.
    """
    files: set[Path] = set()
    known = len(_cache())
    seen, waiting = {module}, [module]
    while waiting:
        parts = waiting.pop().split(".")
        for depth in range(1, len(parts) + 1):  # importing a.b.c runs a and a.b
            file = _file_of(".".join(parts[:depth]), package)
            if file is not None and file not in files:
                files.add(file)
                files.update(_data_files(file))
                found = _imports(file, package) - seen
                seen |= found
                waiting.extend(found)
    if len(_cache()) > known:
        with contextlib.suppress(OSError):  # a cache that cannot be written is none
            write_text(cache_file(), json.dumps(_cache()))
    return tuple(str(path) for path in sorted(files))


def stage_code(stage: str) -> tuple[str, ...]:
    """Files that `dice <stage>` depends on."""
    return code_of(stage_module(stage))


@functools.cache
def _line(file: str) -> str:
    return f"{Path(file).relative_to(PACKAGE)} {_digest(Path(file))}"


@functools.cache
def code_digest(stage: str) -> str:
    """Twelve hexadecimal digits of those files: of their names inside the package and their contents, not of their times."""
    lines = [_line(file) for file in stage_code(stage)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]
