"""Which source files a stage depends on: the closure of its module's imports inside this package.

Snakemake reruns a rule when one of its inputs changes, and knows nothing of what a command imports. A rule therefore
names these files as inputs, and editing a module reruns exactly the stages that can reach it.
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
        self.names: set[str] = set()

    def visit_Import(self, node: ast.Import) -> None:
        self.names.update(alias.name for alias in node.names)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level == 0 and node.module:
            self.names.add(node.module)
            self.names.update(f"{node.module}.{alias.name}" for alias in node.names)

    def visit_If(self, node: ast.If) -> None:
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self.generic_visit(node)


@functools.cache
def _imports(file: Path) -> frozenset[str]:
    visitor = _Imports()
    visitor.visit(ast.parse(file.read_text(encoding="utf-8")))
    return frozenset(name for name in visitor.names if name.split(".")[0] == "dice")


def stage_module(stage: str, package: Path = PACKAGE) -> str:
    """The module of `dice <stage>`, read from the table in dice.cli."""
    tree = ast.parse((package / "cli.py").read_text(encoding="utf-8"))
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
                waiting.extend(_imports(file))
    return tuple(str(path) for path in sorted(files))


def stage_code(stage: str) -> tuple[str, ...]:
    """Files that `dice <stage>` depends on."""
    return code_of(stage_module(stage))
