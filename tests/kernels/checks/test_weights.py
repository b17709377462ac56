"""What only gets the candidate's weights, and what may get an input as well."""

from __future__ import annotations

import ast

import pytest

from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.weights import only_gets_weights

CANDIDATE = """
import torch
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="ext", cpp_sources="", functions=["f", "pack"])


class Packer:
    def __init__(self):
        self.kept = {}

    def __call__(self, w):
        packed = self.kept.get(w.data_ptr())
        if packed is None:
            packed = self.kept[w.data_ptr()] = ext.pack(w)
        return packed


packer = Packer()


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 3)

    def forward(self, x):
        return ext.f(x, packer(self.fc.weight))
"""


def only_weights(code: str) -> bool:
    source = PythonSource(code)
    name = next(node for node in source.mentions("w") if isinstance(node, ast.Name))
    return only_gets_weights(source, name)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("x, packer(", "packer(self.fc.bias), packer("),
        ("super().__init__()", "super().__init__()\n        self.w = None"),
    ],
)
def test_an_object_that_packs_weights(old: str, new: str) -> None:
    assert only_weights(CANDIDATE.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x, packer(", "packer(x), packer("),
        ("x, packer(", "[*map(packer, [x])][0], packer("),
        ("x, packer(", "packer.__call__(x), packer("),
        ("x, packer(", "type(packer)()(x), packer("),
        ("x, packer(", "Packer()(x), packer("),
        ("packer = Packer()", "pack = Packer()\nother = packer"),
        ("packer = Packer()", "pack = Packer()\npacker = ext.pack"),
        ("packer = Packer()", "packer, other = Packer(), Packer()"),
        ("packer = Packer()", "Packer = note(Packer)\npacker = Packer()"),
        ("class Packer:", "class Packer(Kept):"),
        ("class Packer:", "@note\nclass Packer:"),
        ("packer = Packer()", "class More(Packer):\n    pass\n\n\npacker = Packer()"),
        ("        packed =", "        w = self.last\n        packed ="),
        ("        return ext.f", "        self.fc.weight = x\n        return ext.f"),
    ],
)
def test_an_object_that_may_get_an_input(old: str, new: str) -> None:
    changed = CANDIDATE.replace(old, new, 1)
    assert changed != CANDIDATE
    assert not only_weights(changed)
