"""What only gets the candidate's weights, and what may get an input as well."""

from __future__ import annotations

import ast

import pytest

from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.weights import is_weight

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
    return is_weight(source, name)


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


HELPER = """
import os
import torch
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="ext", cpp_sources="", functions=["f", "pack"], verbose=os.environ.get("VERBOSE") == "1")


class Packer:
    def __init__(self):
        self.kept = {}

    def get(self, w):
        packed = self.kept.get(w.data_ptr())
        if packed is None:
            packed = self.kept[w.data_ptr()] = ext.pack(w)
        return packed


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 3)
        self.packer = Packer()

    def forward(self, x):
        return ext.f(x, self.packer.get(self.fc.weight))
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("self.packer.get(self.fc.weight)", "self.packer.get(self.fc.weight.detach().contiguous())"),
        ("self.kept = {}", 'self.kept = {"none": None}'),
    ],
)
def test_a_method_that_a_dict_and_a_module_have_as_well(old: str, new: str) -> None:
    assert only_weights(HELPER.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.packer.get(self.fc.weight)", "self.packer.get(x)"),
        ("self.packer.get(self.fc.weight)", "self.packer.get(self.fc(x))"),
        ("return ext.f", "kept = self.packer\n        kept.get(x)\n        return ext.f"),
        ("return ext.f", "self.packer.kept = self.packer\n        self.packer.kept.get(x)\n        return ext.f"),
        ("return ext.f", "for self.kept in [self.packer]: self.kept.get(x)\n        return ext.f"),
        ("return ext.f", "setattr(self, 'kept', self.packer)\n        self.kept.get(x)\n        return ext.f"),
        ("return ext.f", "setattr(self, 'kep' + 't', self.packer)\n        self.kept.get(x)\n        return ext.f"),
        ("return ext.f", "self.__dict__['kept'] = self.packer\n        self.kept.get(x)\n        return ext.f"),
        ("return ext.f", "os.environ = self.packer\n        os.environ.get(x)\n        return ext.f"),
        ("return ext.f", "os.environ.get = self.packer.get\n        os.environ.get(x)\n        return ext.f"),
        ("return ext.f", "os = self.packer\n        os.get(x)\n        return ext.f"),
        ("return ext.f", "[os.get(x) for os in [self.packer]]\n        return ext.f"),
        ("self.kept = {}", "self.kept = dict()"),
        ("self.kept = {}", "kept = {}\n        self.kept = kept"),
    ],
)
def test_a_method_that_may_get_an_input(old: str, new: str) -> None:
    changed = HELPER.replace(old, new, 1)
    assert changed != HELPER
    assert not only_weights(changed)


LOCAL = """
import torch
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="ext", cpp_sources="", functions=["f"])


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        x, w = x.contiguous(), self.w.detach()
        return ext.f(x, w)
"""


@pytest.mark.parametrize(
    ("old", "new", "only"),
    [
        ("", "", True),
        ("return", "v = w.view(3, 1)\n        w = v\n        return", False),
        ("return", "w = x\n        return", False),
        ("return", "for w in [x]: pass\n        return", False),
        ("return", "w, x = x, w\n        return", False),
        ("return", "self.w = x\n        return", False),
        ("forward(self, x)", "forward(self, x, w=torch.ones(3))", False),
        ("w = x.contiguous(), self.w.detach()", "v = x.contiguous(), self.w.detach()\n        w = v.view(3, 1)", True),
        ("w = x.contiguous(), self.w.detach()", "v = x.contiguous(), self.w.detach()\n        w = v + 1", False),
        ("self.w.detach()", "x", False),
        ("self.w.detach()", "self.w * x", False),
        ("self.w.detach()", "(lambda w: w)(x)", False),
        ("    def forward", "    w = property(read)\n\n    def forward", False),
        ("return", "setattr(self, 'w', x)\n        return", False),
    ],
)
def test_a_local_variable_that_is_a_weight(old: str, new: str, only: bool) -> None:
    changed = LOCAL.replace(old, new, 1)
    source = PythonSource(changed)
    (call,) = (source.parent(node) for node in source.mentions("f") if source.is_called(node))
    assert isinstance(call, ast.Call)
    name = call.args[1]
    assert isinstance(name, ast.Name)
    assert is_weight(source, name) is only
