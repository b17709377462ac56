"""The audit trail, each time in a fork of its own of a process that has PyTorch: an audit hook can never be removed."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dice.kernels.candidate.audit_events import ExceptionTrace, _folders
from dice.kernels.checks import MOST_CHARACTERS

Report = Callable[..., dict[str, Any]]
Heard = Callable[..., list[list[Any]]]

# Reads one line of JSON per candidate; answers with the exit status of the fork that ran it.
SERVER = """
import json, os, runpy, sys
from dice.kernels.candidate.audit_events import AuditTrail, ExceptionTrace
for line in sys.stdin:
    code, scratch, after, out = json.loads(line)
    if child := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        continue
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    trail, told = AuditTrail(code, scratch), []
    trail.tell = told.append
    trail.install()
    with trail.phase("import"), ExceptionTrace(code) as trace:
        runpy.run_path(code)
    exec(after)
    heard = [[a.event, a.line] for a in trail.accesses()] + [["hidden", text] for text in trace.hidden]
    with open(out, "w") as file:
        json.dump({"heard": heard, "told": len(told), "modules": trail.modules}, file)
    os._exit(0)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-c", SERVER]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


@pytest.fixture
def report(server: subprocess.Popen[str], tmp_path: Path) -> Report:
    """Runs `code` as a candidate, then `after` in the same process; returns what was heard, and the modules' texts."""

    def run(code: str, after: str = "") -> dict[str, Any]:
        scratch, candidate, out = (tmp_path / name for name in ("scratch", "candidate.py", "report.json"))
        scratch.mkdir()
        candidate.write_text(code.replace("SCRATCH", str(scratch)))
        assert server.stdin is not None
        assert server.stdout is not None
        print(json.dumps([str(candidate), str(scratch), after, str(out)]), file=server.stdin, flush=True)
        assert server.stdout.readline() == "0\n"
        return json.loads(out.read_text())

    return run


@pytest.fixture
def heard(report: Report) -> Heard:
    return lambda *args: report(*args)["heard"]


def test_each_entry_is_told_once_also_the_one_for_many_more(report: Report) -> None:
    found = report("import time\nfor step in range(100):\n    time.sleep(step * 1e-6)\n")
    assert found["heard"] == [["time.sleep", 3]] * 65
    assert found["told"] == 65


def test_honest_code_leaves_no_trail(heard: Heard) -> None:
    code = """
import collections, dataclasses, functools, inspect, logging, math, tempfile, os
import torch
Point = collections.namedtuple("Point", "x y")
@dataclasses.dataclass
class D:
    a: int = 0
logging.getLogger("x").info("hello")
with open("SCRATCH/kernel.cu", "w") as file:
    file.write("// x")
os.rename("SCRATCH/kernel.cu", "SCRATCH/other.cu")
os.remove("SCRATCH/other.cu")
inspect.signature(D)
torch.nn.Linear(3, 3)(torch.ones(1, 3))
next(iter(range(3)))
for _ in (i for i in range(2)):
    pass
getattr(D(), "nope", None)
handle, path = tempfile.mkstemp(dir="SCRATCH")
with os.fdopen(handle, "w") as file:
    file.write("x")
with tempfile.NamedTemporaryFile("w", dir="SCRATCH") as file:
    file.write("x")
"""
    assert heard(code) == []


def test_a_class_may_be_called_something_else_where_it_is_the_candidates(heard: Heard) -> None:
    code = """
import sys, types
import torch
sys.modules["candidate"] = module = types.ModuleType("candidate")
module.__file__ = __file__
class Own: "text"
Own.__module__ = "candidate"  # as where a candidate is imported
Own.__name__ = Own.__qualname__ = "OwnOfThree"
Own.__doc__ = "more"
torch.nn.Linear.__name__ = "Own"
Own.__bases__ = (Own.__base__,)
def run(): pass
run.__code__ = run.__code__
"""
    lines = {line for event, line in heard(code) if event == "object.__setattr__"}
    assert not lines & {8, 9}
    assert lines >= {7, 10, 13}


def test_byte_code_of_a_helper_is_in_the_scratch_folder(tmp_path: Path, heard: Heard) -> None:
    code = """
import sys
with open("SCRATCH/helper.py", "w") as file:
    file.write("x = 1")
sys.path.insert(0, "SCRATCH")
sys.dont_write_bytecode = False
import helper
assert helper.x == 1
"""
    assert heard(code) == []
    assert list(tmp_path.glob("scratch/__pycache__/helper*.pyc"))


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ("import subprocess; subprocess.run(['true'])", "subprocess.Popen"),
        ("import os; os.system('true')", "os.system"),
        ("import gc; gc.get_objects()", "gc.get_objects"),
        ("import sys; sys._getframe(0)", "sys._getframe"),
        ("import inspect; inspect.stack()", "sys._getframe"),
        ("import ctypes; ctypes.CDLL(None)", "ctypes.dlopen"),
        ("import socket; socket.socket()", "socket.__new__"),
        ("open('/proc/self/maps').read()", "open:r"),
        ("from pathlib import Path; Path('SCRATCH/../out').write_text('x')", "open:w"),
        ("import os; os.close(os.open('SCRATCH/../o2', os.O_CREAT | os.O_WRONLY))", "open:w"),
        ("exec('1')", "exec"),
        ("import os; r, w = os.pipe(); os.fdopen(w, 'wb').close()", "open:w"),
        ("import os; os.fdopen(os.memfd_create('m'), 'wb').close()", "open:w"),
        ("import os, sys; os.fdopen(os.dup(0), 'wb', closefd=False)", "open:w"),
        ("from time import sleep as rest; rest(0)", "time.sleep"),
        ("import time; list(map(time.sleep, [0]))", "time.sleep"),
        ("import importlib; importlib.import_module('math')", "import_module"),
        ("import os; open('SCRATCH/../a', 'x').close(); os.remove('SCRATCH/../a')", "os.remove"),
        ("exec('import gc\\ngc.get_objects()')", "gc.get_objects"),
    ],
)
def test_acts_are_heard(heard: Heard, line: str, event: str) -> None:
    assert event in [name for name, _ in heard(f"\n{line}\n")]


def test_a_loop_over_many_files_is_cut_short_and_hides_no_other_act(heard: Heard) -> None:
    code = """
import os
for number in range(1000):
    for path in (f"/dev/shm/nothing{number}", "/proc/self/stat"):
        try:
            open(path).close()
        except OSError:
            pass
os.system("true")
"""
    trail = heard(code)
    reads = [line for event, line in trail if event == "open:r"]
    assert len(reads) == 65  # 64 of their own and one for the rest
    assert set(reads) == {6}
    assert ["os.system", 9] in trail


def test_the_lines_that_ran(tmp_path: Path) -> None:
    path = tmp_path / "candidate.py"
    path.write_text("def f(x):\n    if x:\n        return 1\n    return 2\nf(0)\n")
    with ExceptionTrace(path) as trace:
        runpy.run_path(str(path))
    assert trace.lines == {1, 2, 4, 5}


def test_swallowed_and_leaving_exceptions(heard: Heard) -> None:
    code = "def f():\n    raise ValueError('inner')\ntry:\n    f()\nexcept ValueError:\n    x = 1\n"
    assert heard(code) == [["hidden", "ValueError: inner (line 2)"]]


def test_the_text_of_modules_that_it_writes_is_kept(tmp_path: Path, report: Report) -> None:
    code = """
import sys
with open("SCRATCH/helper.py", "w") as file:
    file.write("x = 1  # helped")
sys.path.insert(0, "SCRATCH")
import helper
open("SCRATCH/helper.py", "w").write("")
import colorsys
"""
    assert report(code)["modules"] == {str(tmp_path / "scratch/helper.py"): "x = 1  # helped"}


def test_each_text_of_a_module_that_is_written_again_is_kept(tmp_path: Path, report: Report) -> None:
    code = """
import importlib, os, sys
sys.dont_write_bytecode = True
sys.path.insert(0, "SCRATCH")
for number, text in enumerate(["x = 1", "x = 22", "x = 22", "x = 333"]):
    open("SCRATCH/helper.py", "w").write(text)
    sys.modules.pop("helper", None)
    importlib.invalidate_caches()
    import helper
"""
    path = str(tmp_path / "scratch/helper.py")
    assert report(code)["modules"] == {path: "x = 1", f"{path} (2)": "x = 22", f"{path} (3)": "x = 333"}


def test_more_modules_than_the_checks_read_are_kept(report: Report) -> None:
    code = """
import sys
sys.path.insert(0, "SCRATCH")
for number in range(70):
    open(f"SCRATCH/m{number}.py", "w").write(f"x = {number}  #" + "." * 30_000)
    __import__(f"m{number}")
"""
    kept = report(code)["modules"]
    assert len(kept) == 70
    assert sum(map(len, kept.values())) > MOST_CHARACTERS


def test_a_sleep_is_heard_in_a_thread_that_outlives_the_call(heard: Heard) -> None:
    code = """
import threading, time
later = threading.Event()
def rest():
    later.wait()
    time.sleep(0)
threading.later, threading.resting = later, threading.Thread(target=rest)
threading.resting.start()
"""
    after = "import threading, time\ntime.sleep(0)\nthreading.later.set()\nthreading.resting.join()\n"
    assert heard(code, after) == [["time.sleep", 6]]


def test_a_folder_behind_a_link_is_known_by_both_names(tmp_path: Path) -> None:
    (tmp_path / "packages").mkdir()
    (tmp_path / "link").symlink_to("packages")
    assert _folders([tmp_path / "link"]) == {str(tmp_path / "link"), str((tmp_path / "packages").resolve())}
