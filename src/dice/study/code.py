"""Which source files a stage depends on: the closure of its module's imports inside this package.

Snakemake reruns a rule when one of its inputs changes, and knows nothing of what a command imports. A rule therefore
names these files as inputs, and editing a module reruns exactly the stages that can reach it. A module that only hands on
names of others (`dice.kernels.api`) is looked through: who takes a name from it depends on where that name comes from.
"""

from __future__ import annotations

import ast
import functools
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def _file_of(module: str, package: Path) -> Path | None:
    """Path of `dice.a.b`, as a module or as a package; None when there is no such file."""
    place = package.joinpath(*module.split(".")[1:])
    for file in (place.with_suffix(".py"), place / "__init__.py"):
        if file.is_file():
            return file
    return None


class _Imports(ast.NodeVisitor):
    """Names that a file imports; what only a type checker imports is left out."""

    def __init__(self) -> None:
        self.names: dict[str, set[str]] = {}
        """Module -> the names taken from it; none where the module itself is imported."""

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.names.setdefault(alias.name, set())

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level == 0 and node.module:
            self.names.setdefault(node.module, set()).update(alias.name for alias in node.names)

    def visit_If(self, node: ast.If) -> None:
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self.generic_visit(node)


@functools.cache
def _imports(file: Path, package: Path) -> frozenset[str]:
    visitor = _Imports()
    visitor.visit(ast.parse(file.read_text(encoding="utf-8")))
    found: set[str] = set()
    for module, names in visitor.names.items():
        if module.split(".")[0] != "dice":
            continue
        origins = _handed_on(module, package)
        if origins and names:
            found.update(origins.get(name, module) for name in names)
        else:
            found.update([module, *(f"{module}.{name}" for name in names)])
    return frozenset(found)


@functools.cache
def _handed_on(module: str, package: Path) -> dict[str, str]:
    """Name -> the module it comes from, for a module of nothing but imports and `__all__`; empty for any other."""
    file = _file_of(module, package)
    if file is None:
        return {}
    origins: dict[str, str] = {}
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            origins.update({alias.asname or alias.name: node.module for alias in node.names})
        elif not (isinstance(node, ast.Expr) or ast.unparse(node).startswith("__all__ = ")):
            return {}
    return origins


def stage_module(stage: str) -> str:
    """The module of `dice <stage>`, read from the table in dice.cli."""
    tree = ast.parse((PACKAGE / "cli.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["STAGES"]:
            return ast.literal_eval(node.value)[stage][0]
    raise KeyError(stage)


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
    waiting = [module]
    while waiting:
        parts = waiting.pop().split(".")
        for depth in range(1, len(parts) + 1):  # importing a.b.c runs a and a.b
            file = _file_of(".".join(parts[:depth]), package)
            if file is not None and file not in files:
                files.add(file)
                files.update(_data_files(file))
                waiting.extend(_imports(file, package))
    return tuple(str(path) for path in sorted(files))


def stage_code(stage: str) -> tuple[str, ...]:
    """Files that `dice <stage>` depends on."""
    return code_of(stage_module(stage))
