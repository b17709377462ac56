"""Every module of the verifier is imported by a test, or stands here with the reason."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILT = "extensions that the builder makes show what it does (tests/kernels/builder)"
RUN = "candidates that are run show what it does (tests/kernels/grader, tests/kernels/sandbox, tests/red_team)"
NOT_IMPORTED = {
    "dice.kernels.builder.cpu_route": BUILT,
    "dice.kernels.builder.route": BUILT,
    "dice.kernels.builder.split_build": BUILT,
    "dice.kernels.candidate.crossed_calls": RUN,
    "dice.kernels.candidate.failure": RUN,
    "dice.kernels.candidate.forwards": RUN,
    "dice.kernels.candidate.runner": RUN,
    "dice.kernels.grader.agreement": RUN,
    "dice.kernels.grader.relations": RUN,
    "dice.kernels.pool.preload": "a process of its own imports it (tests/kernels/pool/test_preload.py)",
    "dice.kernels.sandbox.fork_process": RUN,
    "dice.kernels.sandbox.candidate_layers": RUN,
    "dice.kernels.sandbox.supervisor": RUN,
    "dice.kernels.sandbox.tool_supervisor": RUN,
}


def imported(source: str) -> set[str]:
    """Modules that a text imports, at its top or in a function; for `from a import b` both `a` and `a.b`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


@pytest.mark.parametrize(
    ("source", "modules"),
    [
        ("import a.b as c", {"a.b"}),
        ("from a.b import c, d", {"a.b", "a.b.c", "a.b.d"}),
        ("def f():\n    from a import b", {"a", "a.b"}),
        ("TEXT = 'import a'", set()),
    ],
)
def test_what_is_imported(source: str, modules: set[str]) -> None:
    assert imported(source) == modules


def test_every_module_is_tested() -> None:
    paths = (ROOT / "src" / "dice" / "kernels").rglob("*.py")
    modules = {".".join(path.relative_to(ROOT / "src").with_suffix("").parts) for path in paths}
    modules = {module for module in modules if not module.endswith(".__init__")}
    tests = set().union(*(imported(path.read_text(encoding="utf-8")) for path in (ROOT / "tests").rglob("*.py")))
    assert len(modules) > 100
    untested = modules - tests - NOT_IMPORTED.keys()
    assert not untested, "write a test that imports it"
    assert set(NOT_IMPORTED) <= modules - tests, "imported by a test now, or gone: take it out of the list"
