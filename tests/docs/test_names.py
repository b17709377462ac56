"""Every file, module, class and function that the documentation names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from pages import PAGES, ROOT, name

TOP = "src|tests|docs|benchmarks|experiments|profiles|containers|paper"
_PATH = re.compile(rf"(?<![\w./-])(?:{TOP})/[\w./*<>{{}}-]*[\w*>}}]")
_DOTTED = re.compile(r"(?<![\w./-])dice(?:\.[A-Za-z_]\w*)+")
SOURCES = sorted(
    path
    for top in ("src", "tests", "benchmarks", "experiments", "profiles", "containers")
    for pattern in ("*.py", "*.smk", "*.yaml", "*.sh", "*.cpp", "*.h", "*.cu", "*.j2", "*.json", "*.svg")
    for path in (ROOT / top).rglob(pattern)
    if path != Path(__file__)
)


@cache
def names_of(file: Path) -> dict[str, set[str]]:
    """Names at the top of a Python file; of a class, the names in its body."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Module | ast.ClassDef):
            continue
        names: set[str] = set()
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                names.add(statement.name)
            elif isinstance(statement, ast.Assign | ast.AnnAssign):
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                names.update(leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name))
            elif isinstance(statement, ast.Import | ast.ImportFrom):
                names.update((alias.asname or alias.name) for alias in statement.names)
        found["" if isinstance(node, ast.Module) else node.name] = names
    return found


def exists(dotted: str) -> bool:
    """Whether `dice.a.b.C.d` is a module, or something that a module defines."""
    parts = dotted.split(".")
    for depth in range(len(parts), 0, -1):
        place = ROOT.joinpath("src", *parts[:depth])
        file = next((f for f in (place.with_suffix(".py"), place / "__init__.py") if f.is_file()), None)
        if file is None and not (place.is_dir() and depth == len(parts)):
            continue
        rest = parts[depth:]
        if not rest:
            return True
        assert file is not None or depth == len(parts)
        names = names_of(file) if file else {}
        return len(rest) <= 2 and rest[0] in names.get("", ()) and (len(rest) == 1 or rest[1] in names.get(rest[0], ()))
    return False


def there(path: str) -> bool:
    """Whether a path of the repository exists, or is an image that is built there; `*`, `<k>`, `{k}` are any name."""
    pattern = re.sub(r"<\w+>|\{\w+\}", "*", path)
    return path.endswith(".sif") or any(True for _ in ROOT.glob(pattern))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_paths_exist(page: Path) -> None:
    assert not [path for path in set(_PATH.findall(page.read_text(encoding="utf-8"))) if not there(path)]


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / "docs" / "pictures").glob("*.svg"))], ids=name)
def test_dotted_names_exist(page: Path) -> None:
    found = {text for text in _DOTTED.findall(page.read_text(encoding="utf-8")) if text.rsplit(".", 1)[1] != "log"}
    assert not [text for text in found if not exists(text)]


def test_what_does_not_exist_is_noticed() -> None:
    assert exists("dice.config.stage_config")
    assert exists("dice.study.config.Study.shards")
    assert not exists("dice.config.nothing_of_the_kind")
    assert not exists("dice.study.config.Study.nothing")
    assert not exists("dice.nothing")
    assert there("docs/*/index.md")
    assert there("experiments/reported/table<n>.csv")
    assert not there("docs/nothing.md")


@pytest.mark.parametrize("page", ["docs/architecture.md", "docs/tutorials/add-a-check.md"])
def test_pages_name_the_list_of_strict_s_experiments_which_has_them_all(page: str) -> None:
    folder = ROOT / "src" / "dice" / "kernels" / "grader"
    order = folder / "sequence.py"
    assert f"`{order.relative_to(ROOT)}`, whose `_EXPERIMENTS` lists them" in (ROOT / page).read_text(encoding="utf-8")
    text = order.read_text(encoding="utf-8")
    names = [
        name for file in folder.glob("*.py") for name in re.findall(r"^def (experiment_\w+)", file.read_text(), re.M)
    ]
    assert len(names) > 10
    assert [name for name in names if not re.search(rf"^    {name},$", text, re.M)] == []


def test_pages_that_the_code_names_exist() -> None:
    dead = {}
    for source in SOURCES:
        pages = re.findall(
            r"(?<![\w./-])docs/[\w/-]+\.(?:md|json|py)", source.read_text(encoding="utf-8", errors="replace")
        )
        if lost := [page for page in pages if not (ROOT / page).is_file()]:
            dead[str(source.relative_to(ROOT))] = lost
    assert not dead
