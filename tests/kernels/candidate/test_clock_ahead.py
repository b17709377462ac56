"""The clocks of a process, set ahead, in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE_S

from dice.kernels.builder.precompiled import CSRC
from dice.kernels.candidate.clock_ahead import goes_through
from dice.kernels.candidate.loaded_objects import Loaded, for_each_object, slots

_PROGRAM = """
import ctypes, sys, time
from datetime import datetime

import numpy as np
from dice.kernels.candidate.clock_ahead import Clocks, set_ahead

library = ctypes.CDLL(sys.argv[1])
library.dice_clocks.restype = ctypes.POINTER(Clocks)
clocks = library.dice_clocks().contents
assert not library.dice_clocks(), "given once"

captured = time.perf_counter_ns
asked = {
    "time": time.time,
    "monotonic": time.monotonic,
    "perf_counter_ns": lambda: captured() / 1e9,
    "process_time": time.process_time,
    "localtime": lambda: time.mktime(time.localtime()),
    "datetime": lambda: datetime.now().timestamp(),
    "numpy": lambda: np.datetime64("now").astype("int64"),
}
before = {name: ask() for name, ask in asked.items()}
assert set_ahead(clocks, 7200, ()) > 0
ways = set_ahead(clocks, 7200, ())
for name, ask in asked.items():
    assert 7190 < ask() - before[name] < 7200 + 3600, name
assert set_ahead(clocks, 0, ()) == ways
assert time.time() - before["time"] < 3600
"""


def test_every_way_to_ask_leads_to_the_clocks_ahead(tmp_path: Path) -> None:
    library = tmp_path / "libclocks.so"
    command = ["g++", "-shared", "-fPIC", "-std=c++17", str(CSRC / "extension" / "clocks.cpp"), "-o", str(library)]
    subprocess.run(command, check=True, timeout=PATIENCE_S)
    subprocess.run([sys.executable, "-c", _PROGRAM, str(library)], check=True, timeout=PATIENCE_S)


def test_objects_tell_whom_they_call() -> None:
    called: dict[str, set[str]] = {}

    def take(loaded: Loaded) -> None:
        called[loaded.path.rpartition("/")[2]] = {name for name, _ in slots(loaded)}

    for_each_object(take)
    assert any("clock_gettime" in names for path, names in called.items() if goes_through(path))
    assert not any("clock_gettime" in names for path, names in called.items() if path.startswith("linux-vdso"))


@pytest.mark.parametrize(
    ("path", "through"),
    [
        ("", True),
        ("/usr/bin/python3.11", True),
        ("/usr/lib/libpython3.11.so.1.0", True),
        ("/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30", True),
        ("/v/lib/python3.11/lib-dynload/_datetime.cpython-311-x86_64-linux-gnu.so", True),
        ("/v/numpy/_core/_multiarray_umath.cpython-311-x86_64-linux-gnu.so", True),
        ("/usr/lib/libc.so.6", False),
        ("/usr/lib/libcuda.so.1", False),
        ("/v/torch/lib/libtorch_cpu.so", False),
        ("/v/torch/lib/libtorch_python.so", False),
        ("linux-vdso.so.1", False),
    ],
)
def test_objects_by_which_a_program_asks(path: str, through: bool) -> None:
    assert goes_through(path) is through
