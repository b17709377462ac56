"""Numbers, texts and orders that are other ones in each process."""

from __future__ import annotations

import pytest

from dice.kernels.checks.per_process import per_process
from dice.kernels.checks.python_source import PythonSource

TEXT = """
import torch
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="ext", cpp_sources="", functions=["f"])
NAMES = {{"relu", "gelu", "silu"}}
LIST = ["relu", "gelu"]

class ModelNew:
    def forward(self, x, y):
        {0}
"""


def differs(body: str) -> bool:
    return bool(per_process(PythonSource(TEXT.format(body))))


@pytest.mark.parametrize(
    "body",
    [
        "return hash('a') % 2",
        "return 'a'.__hash__() % 2",
        "return id(object())",
        "return max(['a', 'b'], key=hash)",
        "return repr(object())[-2] == 'a'",
        "return next(iter({'a', 'b'}))",
        "return list(NAMES)[0]",
        "first, *others = NAMES",
        "return [*NAMES][0]",
        "return (NAMES - {'relu'}).pop()",
        "return ''.join(NAMES)",
        "return str(NAMES)[2]",
        "return tuple(frozenset(LIST))[0]",
        "return [name for name in NAMES][1]",
        "for name in NAMES:\n            break",
        "return next(iter({torch.relu, ext.f}))(x)",
        "return max([torch.relu, ext.f], key=id)(x)",
        "return sorted([torch.relu, ext.f], key=repr)[0](x)",
        "return min([torch.relu, ext.f], key=lambda way: hash(way) % 64)(x)",
        "return id(ext.f) < id(torch.relu)",
    ],
)
def test_it_differs(body: str) -> None:
    assert differs(body)


@pytest.mark.parametrize(
    "body",
    [
        "return 'relu' in NAMES and len(NAMES) > 2",
        "return sorted(NAMES)[0]",
        "return sorted(list(NAMES))[0]",
        "return any(name in x.name for name in NAMES)",
        "for name in NAMES:\n            setattr(self, name, ext)",
        "return {name.upper() for name in NAMES} == {'RELU'}",
        "return next(iter({1, 2, 3}))",
        "return list(set(x.shape))[0]",
        "return {x.device, y.device}.pop()",
        "return hash(x.shape) in self.made",
        "return tuple(map(id, (x, y))) in self.made",
        "return str(x.dtype)",
    ],
)
def test_it_is_the_same(body: str) -> None:
    assert not differs(body)
