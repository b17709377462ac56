"""Whether a table has something already, which no clock says, though one may have chosen what it has."""

from __future__ import annotations

import ast

import pytest

from dice.kernels.checks.circumstances import circumstance_findings
from dice.kernels.checks.lookups import lookups
from dice.kernels.checks.python_source import PythonSource

CANDIDATE = """
import time
import torch
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="ext", cpp_sources="", functions=["f"])
TILES = (8, 16)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.best = {}

    def timed(self, x, tile):
        begun = time.perf_counter()
        ext.f(x, tile)
        return time.perf_counter() - begun

    def pick(self, x):
        key = x.shape, x.device
        tile = self.best.get(key)
        if tile is None:
            times = {t: self.timed(x, t) for t in TILES}
            tile = min(times, key=times.get)
            self.best[key] = tile
        return tile

    def forward(self, x):
        return ext.f(x, self.pick(x))
"""


def found(code: str) -> set[str]:
    return {item.name for item in circumstance_findings(PythonSource(code), None)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("TILES = (8, 16)", "TILES = [8, 16]"),
        ("self.best[key] = tile", "self.best[key] = tile\n            print(times)"),
        ("key = x.shape, x.device", "key = 1"),
    ],
)
def test_what_was_timed_once(old: str, new: str) -> None:
    assert not found(CANDIDATE.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tile = min(times, key=times.get)", "tile = 8 if time.time() > 4e9 else None"),
        ("tile = min(times, key=times.get)", "tile = time.time() > 4e9 or None"),
        ("TILES = (8, 16)", "TILES = (8, None)"),
        ("tile = min(", "times[None] = time.time() - 4e9\n            tile = min("),
        ("tile = min(", "TILES.append(None)\n            tile = min("),
        ("TILES =", "min = lambda *_, key: key(1) if time.time() > 4e9 else None\nTILES ="),
        ("key = x.shape, x.device", "key = time.time() > 4e9"),
        ("self.best[key] = tile", "self.best[tile] = tile"),
        ("self.best[key] = tile", "if tile > 8:\n                self.best[key] = tile"),
        ("self.best[key] = tile", "self.best[key] = tile\n            del self.best[key]"),
        ("        tile = self.best.get(key)", "        self.best = {}\n        tile = self.best.get(key)"),
        ("self.best = {}", "self.best = Table()"),
        ("self.best = {}", "self.best = {}\n        self.__dict__['best'] = Table()"),
        ("self.best = {}", "self.best = {}\n        setattr(self, 'best', Table())"),
        ("class ModelNew", "class Odd:\n    def __add__(self, other):\n        return None\n\n\nclass ModelNew"),
    ],
)
def test_a_clock_says_it(old: str, new: str) -> None:
    assert "environment_sniffing" in found(CANDIDATE.replace(old, new, 1))


def test_the_variable_and_its_lookup_are_given() -> None:
    ((name, value),) = lookups(PythonSource(CANDIDATE))
    assert (name.id, ast.unparse(value)) == ("tile", "self.best.get(key)")
    assert not [*lookups(PythonSource(CANDIDATE.replace("self.best = {}", "self.best = {1: None}")))]
