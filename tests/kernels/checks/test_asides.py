"""Functions that forward calls aside, and what only looks like that."""

from __future__ import annotations

import ast

import pytest

from dice.kernels.checks.asides import is_aside
from dice.kernels.checks.circumstances import circumstance_findings
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.timing import timing_findings

CANDIDATE = """
import logging
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="e", cuda_sources="__global__ void relu_kernel(float* x) { x[0] = 0; }", functions=["relu", "turn"])
logger = logging.getLogger(__name__)
checked = set()


def check(device):
    if device in checked:
        return
    checked.add(device)
    drawn = torch.randn(64, generator=torch.Generator().manual_seed(3)).to(device)
    error = (ext.relu(drawn) - F.relu(drawn)).abs().max().item()
    if error > 1e-4:
        raise RuntimeError(f"relu is wrong on {device}: {error}")
    logger.debug("checked on %s", device)


class ModelNew(nn.Module):
    def forward(self, x):
        check(x.device)
        return ext.relu(x)
"""


def found(code: str) -> tuple[bool, list[str]]:
    """Whether the first `if` stands in such a function, and the findings."""
    source = PythonSource(code)
    condition = next(node for node in ast.walk(source.tree) if isinstance(node, ast.If))
    return is_aside(source, condition), [item.name for item in circumstance_findings(source, None)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("check(x.device)", "check(device=x.device)"),
        ("checked = set()", "checked = []\nmore = {}"),
        ("checked.add(device)", "checked.add(device)\n    torch.cuda.synchronize()"),
        ("checked.add(device)", "checked.add(device)\n    drawn = torch.ones(3)\n    drawn[1] = -1.0"),
        ("    error = (ext", "    torch.testing.assert_close(ext.relu(drawn), F.relu(drawn))\n    error = (ext"),
        ("    if device in checked:\n", "    key = str(device), 1\n    if key in checked:\n"),
        ("    checked.add(device)\n", "    checked.add(device)\n    assert device.type != 'meta'\n"),
    ],
)
def test_a_check_is_no_choice(old: str, new: str) -> None:
    code = CANDIDATE.replace(old, new)
    code = code.replace("checked.add(device)", "checked.add(key)") if "key" in new else code
    assert found(code) == (True, [])


BUILT_LATE = CANDIDATE.replace('ext = load_inline(name="e"', 'def built(): return load_inline(name="e"').replace(
    "ext.", "built()."
)
A_METHOD = """
    def __init__(self):
        super().__init__()
        self.done = False

    def try_out(self, device):
        if not self.done:
            self.done = True
            drawn = torch.randn(64, device=device)
            if not torch.equal(ext.relu(drawn), F.relu(drawn)):
                raise RuntimeError(f"relu is wrong on {device}")

    def forward(self, x):
        self.try_out(x.device)
"""


@pytest.mark.parametrize(
    "code",
    [
        BUILT_LATE,
        CANDIDATE.replace("\n    def forward(self, x):\n        check(x.device)\n", A_METHOD),
        CANDIDATE.replace("        check(x.device)\n", "        x = x.contiguous()\n        check(x.device)\n"),
        CANDIDATE.replace("checked = set()", "checked = set()\nlogger.addHandler(logging.NullHandler())"),
        CANDIDATE.replace("checked = set()", "checked = set()\nlogging.basicConfig(level=logging.INFO)"),
    ],
)
def test_a_check_in_other_places_is_no_choice(code: str) -> None:
    assert found(code)[1] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        check(x.device)\n", "        y = check(x.device)\n        if y is not None: return y\n"),
        ("check(x.device)", "check(x)"),
        ("check(x.device)", "check(x.mean())"),
        ("    checked.add(device)\n", "    checked.add(device)\n    ModelNew.forward = F.relu\n"),
        ("    checked.add(device)\n", "    checked.add(device)\n    ext.turn(drawn)\n"),
        ("    checked.add(device)\n", "    checked.add(device)\n    turn = ext.turn\n    turn(drawn)\n"),
        ("    checked.add(device)\n", "    checked.add(device)\n    torch.cuda.set_stream(torch.cuda.Stream())\n"),
        ("    checked.add(device)\n", "    checked.add(device)\n    slow = torch.set_num_threads\n    slow(1)\n"),
        ("    checked.add(device)\n", "    checked.add(device)\n    nn.functional.__dict__.clear()\n"),
        ("    checked.add(device)\n", "    checked.add(device)\n    setattr(ModelNew, 'kind', F.relu)\n"),
        ("checked = set()", "checked = set([torch.device('cpu')])"),
        ("    checked.add(device)\n", "    checked.add(device)\n    global ext\n    ext = F\n"),
        ("checked.add(device)", "checked.add(str(device))"),
        (
            "        check(x.device)\n        return ext.relu(x)",
            "        return self.run(x)\n\n    run = lambda self, x: check(x.device)",
        ),
        ("        check(x.device)\n", "        check(x.device)\n        ModelNew.forward(self, helper)\n"),
        ("    if device in checked:\n", "    if not device in checked:\n"),
        ("    checked.add(device)\n", "    if len(str(device)) > 3:\n        checked.add(device)\n"),
        ("    checked.add(device)\n", "    checked.add(device)\n    checked.add('cuda:1')\n"),
        ("def check(device):\n", "def check(device):\n    device = torch.randn(1)\n"),
        ("        check(x.device)\n", "        check(x.device)\n        checked.discard(x.device)\n"),
        ("        check(x.device)\n", "        check(x.device)\n        x = x * len(checked)\n"),
        ("    def forward(self, x):", "    def forward(self, y, x=helper):"),
        ("class ModelNew", "nn.Module.register_forward_pre_hook\n\n\nclass ModelNew"),
        ("checked = set()", "checked = set()\nlogger.handlers.append(ModelNew)"),
        ("checked = set()", "checked = set()\nlogging.setLogRecordFactory(load_inline)"),
        ("checked = set()", "checked = set()\nfrom logging import *"),
        ("checked = set()", "checked = set()\nRuntimeError = load_inline"),
        ("checked = set()", "checked = set()\ndef other():\n    import random as torch"),
        (
            "        check(x.device)\n",
            "        try:\n            check(x.device)\n        except RuntimeError:\n            return F.relu(x)\n",
        ),
    ],
)
def test_what_may_change_an_output_is_a_choice(old: str, new: str) -> None:
    assert old in CANDIDATE
    checks, names = found(CANDIDATE.replace(old, new))
    assert not checks
    assert "call_counting" in names


LOGGED = """
import itertools, os
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="e", cuda_sources="__global__ void relu_kernel(float* x) { x[0] = 0; }", functions=["relu"])
calls = itertools.count(1)
TOLD = os.environ.get("TOLD", "0") == "1"
kept = [torch.zeros(1)]


def trace(shape):
    n = next(calls)
    if TOLD and n % 50 == 0:
        print(f"call {n}: {tuple(shape)}", flush=True)


class ModelNew(nn.Module):
    def forward(self, x):
        trace(x.shape)
        return ext.relu(x)
"""


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("", "", False),
        ('os.environ.get("TOLD", "0") == "1"', "False", False),
        ("        print", "        kept.append(n); print", True),
        ("        print", "        kept[0].zero_(); print", True),
        ("        print", "        torch.add(kept[0], 1, out=kept[0]); print", True),
        ("TOLD = os", "TOLD = kept or os", True),
        ("        trace(x.shape)", "        if trace(x.shape): return x", True),
    ],
)
def test_a_line_for_a_log_counts_no_calls(old: str, new: str, counts: bool) -> None:
    assert old in LOGGED
    names = [item.name for item in timing_findings(PythonSource(LOGGED.replace(old, new)))]
    assert names == ["call_counting"] * counts


TOLD = """
import itertools, logging, math, os, sys, time
from types import SimpleNamespace
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="e", cuda_sources="__global__ void relu_kernel(float* x) {{ x[0] = 0; }}", functions=["relu"])
ticks = itertools.count()
log = logging.getLogger("relu")
live = [1]
told = []
{more}


def remark(shape{default}):
    if next(ticks) == 900:
        {done}


class ModelNew(nn.Module):
    def forward(self, x):
        remark({given})
        return ext.relu(x, len(live), len(told), len(log.{asked}))
"""


@pytest.mark.parametrize(
    ("more", "default", "done", "given", "asked"),
    [
        ("", "", "told.append(shape)", "x.shape", "name"),
        ("", "", "log.filters.append(shape)", "x.shape", "filters"),
        ("", "", "log.debug.__self__.handlers.clear()", "x.shape", "name"),
        ("", "", "logging.addLevelName(9, 'fine')", "x.shape", "name"),
        ("", "", "torch.ones(3).numpy().tofile('told')", "x.shape", "name"),
        ("", "", "torch.randn(3)", "x.shape", "name"),
        ("", "", "shape.clear()", "self.shape", "name"),
        ("box = SimpleNamespace(shape=live)", "", "shape.sort()", "box.shape", "name"),
        ("", ", lines=live", "lines.clear()", "x.shape", "name"),
        ("", "", "for line in boxes: line.clear()", "x.shape", "name"),
        ("boxes = []; boxes.append(live)", "", "for line in boxes: line.clear()", "x.shape", "name"),
        ("ways = {}; ways['stop'] = live.clear", "", "ways['stop']()", "x.shape", "name"),
        ("def sorted(shape): live.clear()", "", "sorted(shape)", "x.shape", "name"),
        ("class math:\n    floor = live.clear", "", "print(math.floor())", "x.shape", "name"),
        (
            "class Loud(logging.Handler):\n    emit = live.clear\nlog.handlers.append(Loud())",
            "",
            "log.error('')",
            "x.shape",
            "name",
        ),
        ("class Own(logging.Logger): pass\nlogging.setLoggerClass(Own)", "", "log.error('')", "x.shape", "name"),
    ],
)
def test_what_is_left_behind_for_somebody_counts_calls(
    more: str, default: str, done: str, given: str, asked: str
) -> None:
    code = TOLD.format(more=more, default=default, done=done, given=given, asked=asked)
    assert "call_counting" in [item.name for item in timing_findings(PythonSource(code))]


@pytest.mark.parametrize(
    ("more", "done"),
    [
        ("", "print(f'many calls of {tuple(shape)}', file=sys.stderr)"),
        ("", "print(shape[0], math.prod(shape), time.time())"),
        ("seen = {}", "seen[shape] = seen.get(shape, 0) + 1; print(sorted(seen.items()))"),
        ("class Sizes:\n    def __repr__(self): return ''", "log.warning('many calls of %s', shape)"),
    ],
)
def test_what_only_a_line_says_counts_no_calls(more: str, done: str) -> None:
    code = TOLD.format(more=more, default="", done=done, given="x.shape", asked="name").replace("len(log.name)", "0")
    assert timing_findings(PythonSource(code)) == []
