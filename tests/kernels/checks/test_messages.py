"""Calls that are counted for a message, by name."""

from __future__ import annotations

import pytest

from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.timing import timing_findings

CANDIDATE = """
from collections import Counter, defaultdict
import time
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="e", cuda_sources="__global__ void relu_kernel(float* x) {{ x[0] = 0; }}", functions=["relu"])
calls = {made}


class ModelNew(nn.Module):
    def more(self):
        return 1

    def forward(self, x):
        calls["relu"] += 1
        if {asked}:
            {said}
        return ext.relu(x)
"""


@pytest.mark.parametrize(
    ("made", "asked", "said", "found"),
    [
        ("Counter()", "calls['relu'] % 1000 == 0", "print(ModelNew.__name__, calls['relu'])", False),
        ("{'relu': 0}", "calls[ext.relu.__name__] == 1", "print('first')", False),
        ("[0]", "calls[0] == 1", "print(f'{calls[0]} calls')", False),
        ("defaultdict(int)", "calls['relu'] == 1", "print('first', flush=True)", False),
        ("defaultdict(int)", "calls['relu'] == 1", "print('first', calls['late'])", True),
        ("defaultdict(more)", "calls['relu'] == 1", "print('first')", True),
        ("Table()", "calls['relu'] == 1", "print('first')", True),
        ("Counter()", "calls[more()] == 1", "print('first')", True),
        ("Counter()", "calls['relu'] == 1", "print(calls[more()])", True),
        ("Counter()", "calls['relu'] > 500", "return x", True),
        (
            "[0]",
            "verbose and calls[0] % 9 == 0",
            "print('%d calls, %f s' % (calls[0], self.seconds / calls[0]))",
            False,
        ),
        ("[0]", "verbose or not calls[0] > 9", "print(self.seconds)", True),
        ("[0]", "calls[0] == 9 or more()", "print(self.seconds)", True),
        ("[0]", "calls[0] == 9", "print(self.more)", True),
        ("[0]", "calls[0] % 9 == 0", "torch.cuda.synchronize(); print(time.perf_counter() - self.begun)", False),
        ("[0]", "calls[0] % 9 == 0", "print(time.perf_counter(self.more))", True),
        ("[0]", "calls[0] % 9 == 0", "torch.cuda.empty_cache(); print('cleared')", True),
        ("[torch.cuda.Stream()]", "calls[0] % 9 == 0", "torch.cuda.synchronize()", True),
        ("[Thread(target=more)]", "calls[0] % 9 == 0", "torch.cuda.synchronize()", True),
    ],
)
def test_calls_counted_by_name(made: str, asked: str, said: str, found: bool) -> None:
    source = PythonSource(CANDIDATE.format(made=made, asked=asked, said=said))
    assert [item.name for item in timing_findings(source)] == ["call_counting"] * found


TELLING = """
import functools, logging, sys, warnings
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="e", cuda_sources="__global__ void relu_kernel(float* x) {{ x[0] = 0; }}", functions=["relu"])
log = logging.getLogger("relu")
{more}


class Rates:
    way, rate = 0, 1

    def turn(self, *of):
        self.way = 1
        return 0

    {inside}


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.rates, self.calls = Rates(), 0

    def forward(self, x):
        self.calls += 1
        if self.calls == 900:
            {said}
        return ext.relu(x, self.rates.way)
"""


@pytest.mark.parametrize(
    ("more", "inside", "said", "found"),
    [
        ("", "", "print(self.calls, self.rates.rate)", False),
        ("", "", "log.warning('%d calls of %s', self.calls, x.shape)", False),
        ("log.setLevel(logging.INFO)", "", "log.info('%d calls', self.calls)", False),
        ("log.addHandler(logging.StreamHandler())", "", "log.info('%d calls', self.calls)", False),
        ("logging.basicConfig(level='INFO', format='%(message)s')", "", "logging.info('many calls')", False),
        ("", "took = property(turn)", "print(self.rates.took)", True),
        ("", "took = functools.cached_property(turn)", "print(self.rates.took)", True),
        ("", "__str__ = turn", "print(self.rates)", True),
        ("shown = type('Shown', (Rates,), {'__str__': Rates.turn})", "", "print(shown)", True),
        ("Rates.took = property(Rates.turn)", "", "print(self.rates.took)", True),
        ("def put(self): self.took = property(Rates.turn)", "", "print(self.rates.took)", True),
        ("", "size = turn", "print(self.rates.size())", True),
        ("", "def extra_repr(self): return self.turn()", "print(self.rates)", True),
        ("logging.setLogRecordFactory(Rates().turn)", "", "log.info('many calls')", True),
        ("log.handlers.append(Rates())", "", "log.info('many calls')", True),
        ("logging.getLogger('relu').filters.append(Rates().turn)", "", "log.info('many calls')", True),
        ("log.addHandler(Rates())", "", "log.info('many calls')", True),
        ("logging.basicConfig(handlers=[Rates()])", "", "logging.info('many calls')", True),
        ("class Loud(logging.StreamHandler): emit = Rates.turn", "", "log.info('many calls')", True),
        ("from logging import *", "", "log.info('many calls')", True),
        ("warnings._showwarnmsg = Rates().turn", "", "warnings.warn('many calls')", True),
        ("begun = sys.stderr.tell()", "", "print('many calls', file=sys.stderr)", True),
        ("import datetime\nclass Zone(datetime.tzinfo): utcoffset = Rates.turn", "", "print(self.begun)", True),
        ("class Rows(nn.Module): pass", "", "print(self.rows)", False),
        ("", "", "print(tuple(x.shape), str(x.dtype))", False),
        ("", "", "print(tuple(self.ways))", True),
        ("class logging: warning = Rates.turn", "", "logging.warning('many calls')", True),
        ("def other(): import other as warnings", "", "warnings.warn('many calls')", True),
        ("", "", "print('many calls', file=sys.stderr)", False),
        ("class sys: stderr = None", "", "print('many calls', file=sys.stderr)", True),
        ("from torch.cuda import Stream", "", "torch.cuda.synchronize()", True),
    ],
)
def test_who_listens_to_a_message(more: str, inside: str, said: str, found: bool) -> None:
    source = PythonSource(TELLING.format(more=more, inside=inside, said=said))
    assert [item.name for item in timing_findings(source)] == ["call_counting"] * found


KEPT = """
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="e", cuda_sources="__global__ void relu_kernel(float* x) { x[0] = 0; }", functions=["relu"])
live = [1]
lines = []


class ModelNew(nn.Module):
    def forward(self, x):
        self.calls = self.calls + 1
        lines[:] = [str(self.calls)] if self.calls % 900 == 0 else lines
        return ext.relu(x, len(live))
"""


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("", "", False),
        ("lines = []", "lines = live", True),
        ("[str(self.calls)]", "[live.pop()]", True),
    ],
)
def test_a_list_that_nobody_reads(old: str, new: str, found: bool) -> None:
    source = PythonSource(KEPT.replace(old, new))
    assert [item.name for item in timing_findings(source)] == ["call_counting"] * found


@pytest.mark.parametrize(
    ("done", "found"),
    [
        ("self.calls = 0", False),
        ("self.calls = self.calls - 900", False),
        ("self.live = self.live - 1", True),
        ("live[0] = 0", True),
    ],
)
def test_a_branch_that_only_turns_sets_what_it_asks(done: str, found: bool) -> None:
    code = KEPT.replace(
        "lines[:] = [str(self.calls)] if self.calls % 900 == 0 else lines", f"if self.calls == 900: {done}"
    )
    source = PythonSource(code.replace("len(live)", "self.live"))
    assert [item.name for item in timing_findings(source)] == ["call_counting"] * found
