"""What is made from what, through names; by the position of words in small programs."""

from __future__ import annotations

import ast

import pytest

from dice.kernels.checks.made_from import assigned, made_from
from dice.kernels.checks.python_source import PythonSource

TEXT = """
class ModelNew:
    def forward(self, x):
        {0}
"""


def names_in(text: str, far: int, **rules) -> set[str]:
    """Targets of the assignments whose value is made from a call of `ask`."""
    source = PythonSource(TEXT.format(text.replace("\n", "\n        ")))
    sought = [node for node in source.nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "ask"]
    found = made_from(source, sought, source.values, far, **rules)
    return {
        ast.unparse(node.targets[0]) for node in source.nodes if isinstance(node, ast.Assign) and node.value in found
    }


CHAIN = "a = ask() + 1\nb = [a]\nc = b[0] * x\nd = x"


@pytest.mark.parametrize(("far", "names"), [(0, "a"), (1, "ab"), (2, "abc"), (9, "abc")])
def test_each_name_is_a_step(far: int, names: str) -> None:
    assert names_in(CHAIN, far) == set(names)


def test_circles_end_and_nothing_sought_finds_nothing() -> None:
    assert names_in("a = b + ask()\nb = a\nc = d\nd = c", 99) == {"a", "b"}
    assert names_in("a = b\nb = a", 99) == set()


def test_a_mention_may_not_be_followed_and_a_node_may_hide_what_is_in_it() -> None:
    calls = {"hides": lambda node: isinstance(node, ast.Compare)}
    assert names_in("a = ask() > 1\nb = ask()", 3, **calls) == {"b"}
    loads = {"follows": lambda node: node.id != "a"}
    assert names_in(CHAIN, 9, **loads) == {"a"}


def test_only_assignments_count_and_not_of_the_names_left_out() -> None:
    source = PythonSource(TEXT.format("a = 1\n        for b in (2, 3): pass\n        c = 4"))
    given = assigned(source, {"c"})
    assert [ast.unparse(value) for name in "abc" for value in given(name)] == ["1"]
