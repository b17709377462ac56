"""What a local variable stands for at one place."""

from __future__ import annotations

import ast

import pytest

from dice.kernels.checks.local_values import local_values
from dice.kernels.checks.python_source import PythonSource


def given(body: str) -> str | None:
    """What `t` stands for where `use(t)` reads it."""
    indented = body.replace("\n", "\n    ")
    source = PythonSource(f"def forward(a, t=None):\n    {indented}\n")
    calls = (node for node in source.nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "use")
    name = next(part for part in ast.walk(next(calls)) if isinstance(part, ast.Name) and part.id == "t")
    value = local_values(source).at(name)
    return None if value is None else ast.unparse(value)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("t = 1\nuse(t)", "1"),
        ("t = 1\nt = 2\nuse(t)", "2"),
        ("t = 1\nif a:\n    t = 2\n    use(t)", "2"),
        ("t = 1\nif a:\n    use(t)\n    t = 2", "1"),
        ("t = 1\nif use(t):\n    t = 2", "1"),
        ("t = 1\nif a:\n    t = 2\nelse:\n    use(t)", "1"),
        ("for _ in a:\n    t = 1\n    use(t)\n    t = 2", "1"),
        ("t = 1\ntry:\n    use(t)\nfinally:\n    pass", "1"),
        ("t = 1\nt = use(t)", "1"),
        ("with a:\n    t = 1\n    use(t)", "1"),
        ("t, b = 1, 2\nuse(t)", "1"),
    ],
)
def test_the_last_value_is_sure(body: str, value: str) -> None:
    assert given(body) == value


@pytest.mark.parametrize(
    "body",
    [
        "use(t)",
        "t = 1\nif a:\n    t = 2\nuse(t)",
        "t = 1\nt += 1\nuse(t)",
        "t = 1\nfor _ in a:\n    use(t)\n    t = 2",
        "t = 1\nwhile use(t):\n    t = 2",
        "t = 1\nfor t in a:\n    pass\nuse(t)",
        "t = 1\nif (t := a):\n    use(t)",
        "t = 1\nb = (t := 2) + use(t)",
        "t = 1\nb = [(t := c) for c in a]\nuse(t)",
        "t = 1\ntry:\n    t = 2\nexcept ValueError:\n    use(t)",
        "t = 1\ntry:\n    t = 2\nfinally:\n    use(t)",
        "t = 1\nwith a as t:\n    use(t)",
        "t = 1\nwith a:\n    t = 2\nuse(t)",
        "t = 1\nmatch a:\n    case t:\n        use(t)",
        "t = 1\ndef other():\n    nonlocal t\n    t = 2\nother()\nuse(t)",
        "t = 1\ndef other():\n    return use(t)\nt = 2",
        "t = 1\nb = lambda: use(t)",
        "global t\nt = 1\nuse(t)",
        "t = a[use(t)] = 2",
        "t, *b = a\nuse(t)",
        "t = 1\ndel t\nuse(t)",
        "t = 1\nimport torch as t\nuse(t)",
    ],
)
def test_another_value_is_possible(body: str) -> None:
    assert given(body) is None
