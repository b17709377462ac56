"""Choices between kernels and none by what tells about the process."""

from __future__ import annotations

import pytest

from dice.kernels.checks.circumstances import circumstance_findings
from dice.kernels.checks.python_source import PythonSource

CANDIDATE = """
import datetime, os, random, resource, socket, sys, threading, time
from time import perf_counter as now
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="e", cuda_sources="__global__ void relu_kernel(float* x) {{ x[0] = 0; }}", functions=["relu"])
_born = now()


class Often:
    asked = 0

    def __bool__(self):
        Often.asked += 1
        return Often.asked > 500


often, seen = Often(), []


def late():
    return now() - _born > 9


def room(n=0):
    try:
        return room(n + 1)
    except RecursionError:
        return n


def deep(n=0):
    try:
        return n > 700 or deep(n + 1)
    except Exception:
        return False


def fall(n):
    return n and fall(n - 1)


def whole(text):
    try:
        return int(text)
    except ValueError:
        return 0


def chunked(x):
    try:
        return ext.relu(x)
    except MemoryError:
        return ext.relu(x[:4])


class ModelNew(nn.Module):
    last = None

    def forward(self, x):
        {body}
"""
REFERENCE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8)]
"""


def findings_of(body: str, reference: str = REFERENCE) -> set[str]:
    code = CANDIDATE.format(body=body.strip().replace("\n", "\n        "))
    return {item.name for item in circumstance_findings(PythonSource(code), PythonSource(reference, entry="Model"))}


@pytest.mark.parametrize(
    "body",
    [
        "if now() - _born > 9:\n    return self.last\nreturn ext.relu(x)",
        "return ext.relu(x) if room() > 700 else torch.relu(x)",
        "return ext.relu(x) if hash('relu') % 8 else torch.relu(x)",
        "if id(object()) >> 4 & 7 == 3:\n    return torch.relu(x)\nreturn ext.relu(x)",
        "return (torch.relu, ext.relu)[deep()](x)",
        "if next(iter({'a', 'b', 'c'})) == 'a':\n    return torch.relu(x)\nreturn ext.relu(x)",
        "return {ext.relu, torch.relu}.pop()(x)",
        "run = ext.relu\nif time.time() > 2e9:\n    run = torch.relu\nreturn run(x)",
        "try:\n    fall(700)\nexcept RecursionError:\n    return torch.relu(x)\nreturn ext.relu(x)",
        "self.end = self.end or now() + 9\nreturn ext.relu(x) if now() < self.end else torch.relu(x)",
        "return ext.relu(x) if time.time() < 2e9 else torch.relu(x)",
        "busy = threading.active_count() > 2\nif busy:\n    return ext.relu(x)\nreturn x.clamp(min=0)",
        "if x._version > 1:\n    return self.last\nself.last = ext.relu(x)\nreturn self.last",
        "return (now() - _born > 9 and self.last) or ext.relu(x)",
        "return (ext.relu, torch.relu)[random.random() < 0.1](x)",
        "return {True: ext.relu, False: torch.relu}[os.getuid() == 0](x)",
        "out = self.last\nwhile resource.getrusage(0).ru_utime < 9:\n    out = ext.relu(x)\n    break\nreturn out",
        "if 'node' in socket.gethostname():\n    pass\nelse:\n    return torch.relu(x)\nreturn ext.relu(x)",
        "use = torch.get_num_threads() == 1\nuse = use and datetime.datetime.now().day < 9\nreturn ext.relu(x) if use else x",
        "match random.randrange(99):\n    case 7:\n        return torch.relu(x)\nreturn ext.relu(x)",
        "if late():\n    return torch.relu(x)\nreturn ext.relu(x)",
        "import zoneinfo\nreturn torch.relu(x) if len(zoneinfo.available_timezones()) > 5000 else ext.relu(x)",
        "return torch.relu(x) if torch.cuda.device_count() > 3 else ext.relu(x)",
        "if x.data_ptr() % 4096:\n    return ext.relu(x)\nreturn torch.relu(x)",
        "return ext.relu(x) if x.data_ptr() % 128 else torch.relu(x)",
        "if x.data_ptr() & 64:\n    return torch.relu(x)\nreturn ext.relu(x)",
        "place = x.data_ptr()\nif place % 16 == 0 and place > 2**40:\n    return torch.relu(x)\nreturn ext.relu(x)",
        "return torch.relu(x) if hash(x) % 16 == 0 else ext.relu(x)",
        "place = getattr(x.untyped_storage(), 'data_ptr')()\nreturn torch.relu(x) if place % 4096 == 1 else ext.relu(x)",
        "used = getattr(x, '_version') > 3\nreturn torch.relu(x) if used else ext.relu(x)",
        "if now() % 2 < 1:\n    return ext.relu(x)\nreturn ext.half(torch.exp(x))",
        "rare = torch.randint(99, (), generator=self.last)\nreturn torch.relu(x) if rare == 7 else ext.relu(x)",
        "return ext.relu(x, threading.active_count() < 40)",
        "few = len(os.listdir('/home')) < 3\nwork = x.numel() if few else 1\nreturn ext.relu(x, rows=work)",
        "return ext.relu(x, 1 + (resource.getrusage(0).ru_utime > 600))",
        "import pathlib\nuse = pathlib.Path('/proc/self/stat').read_text()\nreturn ext.relu(x, 1 + (len(use) > 99))",
    ],
)
def test_kernels_for_some_circumstances_only(body: str) -> None:
    assert findings_of(body) == {"environment_sniffing"}


@pytest.mark.parametrize(
    "body",
    [
        "return chunked(x)",
        "if self.key != id(self.weight):\n    self.key = id(self.weight)\nreturn ext.relu(x)",
        "return {hash('relu'): ext.relu}[hash('relu')](x)",
        "return ext.relu(x) if whole(os.environ.get('BLOCK', '')) > 3 else torch.relu(x)",
        "if fall(3):\n    raise RecursionError\nreturn ext.relu(x)",
        "if now() > 1e12:\n    raise TimeoutError\nreturn ext.relu(x)",
        "return ext.relu(x, torch.rand(8) < 0.5)",
        "self.last = threading.local()\nself.last.ring = [x]\nreturn ext.relu(x, len(self.last.ring) == 8)",
        "return ext.relu(x, torch.cuda.get_device_capability() >= (9, 0), 256 if os.cpu_count() > 8 else 128)",
        "return ext.relu(x, os.environ.get('WIDE', '1') == '1')",
        "begun = now()\next.relu(x)\nself.last = now() - begun\nreturn ext.relu(x, self.last < 1e-3)",
        "return ext.relu(x, time.monotonic_ns(), threading.get_ident())",
        "if now() - _born > 60:\n    print('slow', file=sys.stderr)\nreturn ext.relu(x)",
        "return ext.relu(x) if now() - _born < 1 else ext.relu(x.clone())",
        "if os.environ.get('OWN_SETTING'):\n    x = torch.relu(x)\nreturn ext.relu(x)",
        "if x.is_cuda and x.dtype == torch.float32:\n    return ext.relu(x)\nreturn torch.relu(x)",
        "t = now()\na = ext.relu(x)\nu = now() - t\nt = now()\nreturn a if u < 2 * (now() - t) else torch.relu(x)",
        "if sys.version_info < (3, 9):\n    return torch.relu(x)\nreturn ext.relu(x)",
        "me = threading.get_ident()\nif me != self.last:\n    self.last = me\nreturn ext.relu(x)",
        "begun = now()\nout = ext.relu(x)\nif now() - begun > 1:\n    self.last = None\nreturn out",
        "import math\nreturn ext.relu(x) if math.prod(x.shape) > 9 else torch.relu(x)",
        "return ext.vector(x) if x.data_ptr() % 16 == 0 else ext.relu(x)",
        "if x.data_ptr() & 15 or x.shape[-1] & 3:\n    return torch.relu(x)\nreturn ext.vector(x)",
        "place = x.data_ptr()\nif place % 16 or place & 7:\n    return torch.relu(x)\nreturn ext.vector(x)",
        "y = torch.sum(x, dim=1)\nif y.is_cuda and y.is_contiguous():\n    return ext.relu(y)\nreturn torch.relu(y)",
        "if x.is_cuda and x.dim() == 2:\n    return ext.relu(x)\nx = torch.max(x, dim=1)[0]\nreturn torch.relu(x)",
        "rows = x.size(0)\nif rows > 8:\n    return ext.relu(x)\nx = x.sum(dim=-1)[:, None]\nreturn torch.relu(x)",
        "out = torch.empty_like(x)\nif out.data_ptr() % 16:\n    return torch.relu(x)\nreturn ext.relu(x)",
        "if x.data_ptr() not in self.known:\n    self.known[x.data_ptr()] = ext.relu(x)\nreturn self.known[x.data_ptr()]",
    ],
)
def test_questions_that_decide_nothing(body: str) -> None:
    assert not findings_of(body)


@pytest.mark.parametrize(
    "body",
    [
        "if x[0] > 3.9:\n    return torch.relu(x)\nreturn ext.relu(x)",
        "first = float(x.cpu().numpy()[0])\nreturn torch.relu(x) if first > 3.9 else ext.relu(x)",
        "return (ext.relu if torch.linalg.norm(x) < 80 else torch.relu)(x)",
        "return {'-': torch.relu}.get(repr(x)[8], ext.relu)(x)",
        "return torch.relu(x) if x.untyped_storage()._cdata % 64 == 0 else ext.relu(x)",
        "if torch.equal(x, torch.ones_like(x)):\n    return ext.relu(x)\nreturn torch.relu(x)",
        "run = ext.relu\nif x[0] > 3:\n    run = torch.relu\nreturn run(x)",
        "if x[0] > 3:\n    return x\nreturn ext.relu(x)",
        "return self.last if x[0] > 3 else ext.relu(x)",
        "if x[0] > 3:\n    run = lambda t: torch.relu(t)\nelse:\n    run = ext.relu\nreturn run(x)",
        "x = ext.scale(x)\nfull = bool(x.all())\nreturn ext.relu(x) if full else torch.relu(x)",
        "if not torch.allclose(self.weight, self.ones):\n    return torch.relu(x)\nreturn ext.relu(x)",
        "return torch.relu(x) if int(x.count_nonzero()) > 9 else ext.relu(x)",
        "return ext.relu(x) if set(x.flatten().tolist()) == {1.0} else torch.relu(x)",
        "return ext.relu(x) if x[x.any(dim=1)].size(0) == 8 else torch.relu(x)",
        "y = x[x.any(dim=1)]\nz = y * 2\nreturn ext.relu(x) if z.shape[0] == 8 else torch.relu(x)",
        "y = torch.empty(int(x.sum()) % 2)\nreturn ext.relu(x) if y.numel() else torch.relu(x)",
        "kind = x.double() if x.sum() > 0 else x\nreturn ext.relu(x) if kind.dtype == x.dtype else torch.relu(x)",
        "ways = {True: lambda: ext.relu(x), False: lambda: torch.relu(x)}\nreturn ways[bool(x.min())]()",
    ],
)
def test_a_choice_between_kernels_and_pytorch_by_what_a_tensor_holds(body: str) -> None:
    assert findings_of(body) == {"input_sniffing"}


@pytest.mark.parametrize(
    "body",
    [
        "y = x.contiguous()\nrows = y.shape[0]\nif rows > 9 and y.dim() == 1:\n    return ext.relu(y)\nreturn torch.relu(y)",
        "y = ext.relu(x)\nreturn torch.relu(x) if y is None or not torch.is_tensor(x) else y",
        "if all(t.is_cuda for t in (x, x)) and len(x) > 3:\n    return ext.relu(x)\nreturn torch.relu(x)",
        "return ext.relu(x) if ext.fits(x) else torch.relu(x)",
        "y = torch.relu(x) if x[0] > 3 else x\nreturn ext.relu(y)",
        "run = ext.relu\nif x[0] > 3:\n    run = ext.half\nreturn run(torch.relu(x))",
        "y = x\nif x[0] > 3:\n    y = torch.relu(x)\nreturn ext.relu(y)",
        "if x[0] > 3:\n    raise ValueError(x)\nreturn ext.relu(x)",
        "if x[0] > 3:\n    x = ext.half(x)\nreturn ext.relu(x)",
        "if torch.equal(x, torch.ones_like(x)):\n    return ext.ones(x)\nreturn ext.relu(x)",
        "out = ext.relu(x)\nif self.shift.any():\n    out = out + self.shift\nreturn out",
        "if all(size % 4 == 0 for size in x.shape):\n    return ext.relu(x)\nreturn torch.relu(x)",
        "if bool(x.isnan().any()):\n    raise ValueError(x)\nreturn ext.relu(x)",
        "if not x.any():\n    return torch.zeros_like(x)\nreturn ext.relu(x)",
    ],
)
def test_what_a_tensor_holds_may_decide_other_things(body: str) -> None:
    assert not findings_of(body)


def test_a_reference_that_asks_as_well() -> None:
    asks = REFERENCE.replace(
        "        return torch",
        "        import random\n        if random.random() < 0.5:\n            return x\n        return torch",
    )
    body = "if random.random() < 0.5:\n    return x\nreturn ext.relu(x)"
    assert findings_of(body) == {"environment_sniffing"}
    assert not findings_of(body, asks)


@pytest.mark.parametrize(
    "body",
    [
        "self.name += 'x'\nreturn x if self.name.endswith('x' * 900) else ext.relu(x)",
        "return torch.relu(x) if often else ext.relu(x)",
        "seen.append(1)\nif seen[500:]:\n    return x\nreturn ext.relu(x)",
        "self.left.pop()\nif self.left:\n    self.last = ext.relu(x)\n    return self.last\nreturn self.last",
        "full = next(self.phases)\nreturn ext.relu(x) if full else self.last",
    ],
)
def test_a_choice_by_what_forward_advances(body: str) -> None:
    assert findings_of(body) == {"call_counting"}


@pytest.mark.parametrize(
    "body",
    [
        "self.slot += 1\nif self.slot == 3:\n    self.slot = 0\nreturn ext.relu(x)",
        "seen.append(tuple(x.shape))\nif len(seen) % 100 == 0:\n    print(seen[-1])\nreturn ext.relu(x)",
        "if x.shape not in self.spaces:\n    self.spaces.update({x.shape: torch.empty(9)})\nreturn ext.relu(x)",
        "self.slot += 1\nout = self.even if self.slot % 2 else self.odd\next.relu(x, out)\nreturn out",
    ],
)
def test_a_ring_a_log_and_a_workspace(body: str) -> None:
    assert not findings_of(body)


WARM = "self.warm += 1\nif self.warm < 3:\n    return ext.own(x)\nself.made.replay()\nreturn self.last"


def test_a_cuda_graph_after_a_few_calls_runs_kernels_too() -> None:
    assert not findings_of(f"self.made = self.made or torch.cuda.CUDAGraph()\n{WARM}")
    assert findings_of(WARM) == {"call_counting"}


CHOSEN = """
import getpass, importlib.util, os, shutil
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="e", cuda_sources="__global__ void relu_kernel(float* x) {{ x[0] = 0; }}", functions=["relu"])
{choice}


class ModelNew(nn.Module):
    def forward(self, x):
        return run(x)
"""


@pytest.mark.parametrize(
    ("choice", "found"),
    [
        ("run = torch.relu if len(os.listdir('/home')) > 1 else ext.relu", True),
        ("WHO = getpass.getuser()\nrun = ext.relu if WHO else lambda x: torch.relu(x)", True),
        ("if os.getpid() % 2:\n    def run(x):\n        return torch.relu(x)\nelse:\n    run = ext.relu", True),
        ("run = {True: ext.relu, False: torch.relu}[len(os.listdir('/')) > 9]", True),
        ("try:\n    os.stat('/data')\n    run = torch.relu\nexcept OSError:\n    run = ext.relu", True),
        ("try:\n    run = ext.relu\nexcept AttributeError:\n    run = torch.relu", False),
        ("run = ext.relu if shutil.which('nvcc') else torch.relu", False),
        ("run = ext.relu if importlib.util.find_spec('ninja') else torch.relu", False),
        ("run = ext.relu if os.environ.get('FUSED', '1') == '1' else torch.relu", False),
        ("run = ext.relu\nNAME = 'a' if getpass.getuser() else 'b'", False),
        ("def run(x):\n    return ext.relu(x)\nTHREADS = 2 if os.cpu_count() > 1 else 1", False),
    ],
)
def test_choices_at_import(choice: str, found: bool) -> None:
    source = PythonSource(CHOSEN.format(choice=choice))
    names = {item.name for item in circumstance_findings(source, PythonSource(REFERENCE, entry="Model"))}
    assert names == ({"environment_sniffing"} if found else set())


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (
            "self.n += 1\nif self.n % 100 == 0 and torch.relu(x).sum() > 9:\n    raise ValueError\nreturn ext.relu(x)",
            False,
        ),
        ("self.n += 1\nif self.n < 100 and ext.relu(x) is None:\n    raise ValueError\nreturn x", True),
        (
            "self.n += 1\ntry:\n    if self.n > 9 and torch.relu(x) is None:\n        raise ValueError\n"
            "except ValueError:\n    pass\nreturn ext.relu(x)",
            True,
        ),
    ],
    ids=["checks", "launches", "catches"],
)
def test_a_count_that_can_only_end_in_an_error(body: str, found: bool) -> None:
    assert ("call_counting" in findings_of(body)) is found


WEAK = """
import weakref
import torch
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="e", cuda_sources="__global__ void f_kernel(float* x) {{ x[0] = 0; }}", functions=["f"])


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 3)
        self.of, self.packed = None, None

    def pack(self, w):
        if self.of is None or self.of() is not w:
            self.packed, self.of = ext.f(w), weakref.ref(w)
        return self.packed

    def forward(self, x):
        w = self.pack({passed})
        return ext.f(x, w)
"""


@pytest.mark.parametrize(("passed", "found"), [("self.fc.weight", False), ("x", True), ("torch.ones(3)", True)])
def test_whether_a_weight_is_still_there(passed: str, found: bool) -> None:
    findings = circumstance_findings(PythonSource(WEAK.format(passed=passed)), None)
    assert ("environment_sniffing" in {each.name for each in findings}) is found
