"""Which operators does a module's forward apply? Answered by torch.fx, which runs the program's constructor.

The program is somebody else's code, so it runs in a worker process with the verifier's isolation (no network,
read-only root, limits, seccomp; `dice.kernels.api`) on the meta device, where no tensor has memory. One worker
serves many programs; one that dies or takes too long is replaced and the program is given up with the reason. The
worker's answers are read as JSON and checked: the worst that a hostile program can do is to mislabel.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

from dice.errors import HarnessError
from dice.kernels.api import SandboxSpec, isolate_this_process

START_TIMEOUT_S = 180.0
"""For starting the worker, which imports torch."""
_MEMORY_BYTES = 4 << 30
_LONGEST_ANSWER = 1 << 20
_SPELLINGS = {"truediv": "div", "iadd": "add", "isub": "sub", "imul": "mul", "itruediv": "div", "invert": "bitwise_not",
              "mod": "remainder", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}  # fmt: skip


_WARM_UP = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 4), nn.Conv2d(1, 1, 1), nn.LayerNorm(4), nn.Embedding(4, 4))
        self.lstm = nn.LSTM(4, 4)
        self.weight = nn.Parameter(torch.randn(4, 4) * 2)

    def forward(self, x):
        return F.softmax(self.lstm(self.layers(x) @ self.weight)[0], dim=-1).sum()

def get_init_inputs():
    return []
"""


class NotTraced(Exception):
    """torch.fx cannot follow the program; the message is the reason."""


class TracingWorker:
    """Answers `operators(code)` from a confined process. A context manager; start it once for many programs."""

    def __init__(self, timeout_s: float = 20.0) -> None:
        self.timeout_s = timeout_s
        self.isolation: list[str] = []
        """The layers that are in force in the worker."""
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._answers = -1
        self._buffer = b""

    def __enter__(self) -> TracingWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def operators(self, code: str) -> list[str]:
        """Operators of `Model`'s forward, as `operators_of_source` names them. Raises NotTraced, HarnessError."""
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(code).encode() + b"\n")
            process.stdin.flush()
            answer = self._answer(self.timeout_s)
        except (TimeoutError, EOFError, BrokenPipeError) as error:
            self.stop()
            reason = f"no answer in {self.timeout_s:g} s" if isinstance(error, TimeoutError) else "the worker died"
            raise NotTraced(reason) from error
        if not isinstance(answer, dict) or not isinstance(answer.get("operators"), list):
            raise NotTraced(str(answer.get("reason", "no answer") if isinstance(answer, dict) else "no answer")[:200])
        return [str(name)[:80] for name in answer["operators"]]

    def stop(self) -> None:
        """End the worker and everything that it started."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
        os.close(self._answers)
        if self._folder is not None:
            self._folder.cleanup()
        self._process, self._folder, self._answers, self._buffer = None, None, -1, b""

    def _start(self) -> subprocess.Popen[bytes]:
        read, write = os.pipe()
        self._folder = tempfile.TemporaryDirectory(prefix="dice-trace-")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dice.data.tracing", str(write)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": self._folder.name},
            pass_fds=(write,),
            start_new_session=True,
        )
        os.close(write)
        self._answers = read
        try:
            ready = self._answer(START_TIMEOUT_S)
        except (TimeoutError, EOFError) as error:
            self.stop()
            raise HarnessError(
                "The torch.fx worker did not start; use --method source, which executes nothing."
            ) from error
        self.isolation = [str(name) for name in ready.get("isolation", [])] if isinstance(ready, dict) else []
        return self._process

    def _answer(self, timeout_s: float) -> Any:
        """The next line as JSON. Raises TimeoutError, EOFError."""
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._answers], [], [], left)[0]:
                raise TimeoutError
            chunk = os.read(self._answers, 65536)
            if not chunk or len(self._buffer) > _LONGEST_ANSWER:
                raise EOFError
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            return json.loads(line)
        except ValueError:
            return None


# ---- the worker's side -------------------------------------------------------------------------------------------


def _isolate() -> list[str]:
    """Put every layer around this process that the machine allows; returns those in force."""
    spec = SandboxSpec(
        scratch_bytes=16 << 20,
        file_bytes=1 << 20,
        processes=64,
        data_bytes=_MEMORY_BYTES,
        output_bytes=0,
        cuda_visible_devices="",
        threads=1,
    )
    # Imported before the limits, and once for all programs.
    return isolate_this_process(spec, lambda: importlib.import_module("torch.fx"))


def _spelling(name: str) -> str:
    name = name.strip("_") or name
    return _SPELLINGS.get(name, name)


def _nodes(code: str) -> Iterator[str]:
    import torch
    import torch.fx

    class Tracer(torch.fx.Tracer):
        """Also follows layers that forward builds itself, which have no place in the module's tree."""

        def path_of_module(self, mod: torch.nn.Module) -> str:
            try:
                return super().path_of_module(mod)
            except NameError:
                path = f"_made_{len(self.submodule_paths or {})}"
                self.root.add_module(path, mod)
                self.submodule_paths = {**(self.submodule_paths or {}), mod: path}
                return path

    names: dict[str, Any] = {"__name__": "problem"}
    with torch.device("meta"):
        exec(compile(code, "problem.py", "exec"), names)
        tracer = Tracer()
        graph = tracer.trace(names["Model"](*names["get_init_inputs"]()))
    for node in graph.nodes:
        if node.op == "call_module":
            yield type(tracer.root.get_submodule(str(node.target))).__name__
        elif node.op == "call_method":
            yield _spelling(str(node.target))
        elif node.op == "call_function":
            yield _spelling(getattr(node.target, "__name__", str(node.target)))


def _traced(code: str) -> dict[str, Any]:
    from dice.data.interpretation import NOT_TENSORS

    try:
        return {"operators": [name for name in _nodes(code) if name not in NOT_TENSORS and name != "getattr"]}
    except BaseException as error:  # noqa: BLE001 - whatever the program raises is the answer
        return {"reason": f"{type(error).__name__}: {error}"[:200]}


def _in_child(code: str, answers: int) -> dict[str, Any]:
    """Trace in a process of its own, so that no program finds what an earlier one changed."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        for fd in (read, answers, 0):
            os.close(fd)
        with os.fdopen(write, "w") as stream:
            stream.write(json.dumps(_traced(code)))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        data = stream.read(_LONGEST_ANSWER)
    os.waitpid(child, 0)
    try:
        return json.loads(data)
    except ValueError:
        return {"reason": "the program ended its process"}


def _serve(answers: int) -> None:
    def tell(answer: Any) -> None:
        os.write(answers, json.dumps(answer).encode() + b"\n")

    isolation = _isolate()
    _traced(_WARM_UP)  # what torch imports on first use is then imported once and not in every fork
    gc.freeze()  # forks then do not copy what a collection would touch
    tell({"isolation": isolation})
    for line in sys.stdin:
        tell(_in_child(json.loads(line), answers))


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
