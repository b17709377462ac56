"""Odd words from candidates: does the verifier stay up, whatever they answer and whatever they ask to be built?

    python benchmarks/fuzz_verifier.py --messages 100000 [--builds 20000] [--compiled 100] [--seed 0] [--cache DIR]

A candidate is played by a thread of this process, at the other end of a real channel: it computes the right answers, and
says odd things in their place, drawn by Hypothesis: broken frames, JSON of any shape, replies with something replaced at
any depth (lone surrogates, 10**400, NaN, deep nesting, absurd shapes, wrong types). The executor is the real one; each
verdict is written and read back. Then odd build requests go the same way to a real builder with its jail, whose compiler
repeats the source as its error message; and some to one with the real compiler. Demanded: no exception, no `host_error`,
as many open descriptors as before; the exit code is 1 otherwise. Texts of candidates and files of verdicts:
`fuzz_texts.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import inspect
import itertools
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from dice.jsonl import to_line
from dice.kernels.builder.builder import Builder
from dice.kernels.builder.resource_usage import Multiprocessor
from dice.kernels.grader.executor import Executor
from dice.kernels.records.evidence import Access, Change, OpUse, OutputFacts
from dice.kernels.records.explanation import KernelUse
from dice.kernels.records.extension import BuildResult, ExtensionRequest
from dice.kernels.records.job import Job, Judging, Limits
from dice.kernels.records.verdict import Verdict
from dice.kernels.sandbox import values
from dice.kernels.sandbox.channel import Channel, ChannelClosed, ChannelGarbage
from dice.kernels.sandbox.fork_server import ForkServer, Spawned
from dice.kernels.sandbox.replies import ExtensionReport, Facts
from dice.kernels.sandbox.shared_memory import SharedBuffer

PROBLEM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = nn.Linear(n, n)

    def forward(self, x):
        return torch.relu(self.linear(x)), x.shape[0]


def get_inputs():
    return [torch.randn(4, 8)]


def get_init_inputs():
    return [8]
"""
ODD_TEXTS = [
    "\ud800",
    "a\udfffb",
    "\x00",
    "\x1b[2J\n\r",
    "../../etc/passwd",
    "/proc/self/environ",
    "nan",
    "-0x1p999999",
    "cuda:99999999999999999999",
    "torch.float32",
    "tensor",
    "import",
]
ODD_NUMBERS = [0, -1, 1, 2**31, 2**53, 2**63, 2**64, 2**70, -(2**70), 10**400, 10**4299, 0.5, -0.0, 1e308, 5e-324]
RAW = {
    "<nan>": "NaN",
    "<inf>": "-Infinity",
    "<over>": "1e999",
    "<digits>": "9" * 5000,
    "<lone>": '"\\ud800"',
    "<deep>": "[" * 100 + "]" * 100,
    "<deeper>": '{"a":' * 5000 + "0" + "}" * 5000,
    "<many>": "[" + "0," * 20_000 + "0]",
    "<names>": "{" + ",".join(f'"{n}":{n}' for n in range(2000)) + "}",
    "<twice>": '1,"ok":false,"ok":1,"header":{},"facts":{}',
}
"""What `json.dumps` does not write, by the texts that stand for it."""

odd_texts = (
    st.sampled_from(ODD_TEXTS)
    | st.text(st.characters(), max_size=30)
    | st.builds(lambda mark, count: mark * count, st.sampled_from(["x", "é", "0xff", "a/"]), st.integers(1, 6000))
)
scalars = (
    st.none()
    | st.booleans()
    | st.sampled_from(ODD_NUMBERS)
    | st.integers()
    | st.floats()
    | odd_texts
    | st.sampled_from(sorted(RAW))
)
odd_json = st.recursive(
    scalars, lambda part: st.lists(part, max_size=4) | st.dictionaries(odd_texts, part, max_size=4), max_leaves=12
)


@st.composite
def headers(draw: st.DrawFn) -> Any:
    """Headers of values: nearly right ones."""
    tensor = st.fixed_dictionaries(
        {
            "kind": st.just("tensor"),
            "dtype": st.sampled_from(["float32", "bool", "complex64", "float8_e4m3fn", "float31"]),
            "shape": st.lists(st.sampled_from([0, 1, 4, 8, 2**20, 2**47, 2**70, -1]), max_size=6),
            "device": st.sampled_from(["cpu", "cuda", "meta"]),
            "offset": st.sampled_from([0, 256, 512, 1, -256, 2**50]),
            "bytes": st.sampled_from([0, 4, 32, 128, 2**40, 10**30]),
        },
        optional={"strides": st.lists(st.sampled_from([0, 1, 8, 2**40, -1]), max_size=6)},
    )
    kinds = ["plain", "int", "float", "complex", "size", "dtype", "device", "list", "tuple", "dict", "module"]
    plain = st.fixed_dictionaries({"kind": st.sampled_from(kinds)}, optional={"value": odd_json, "items": odd_json})
    return draw(
        st.recursive(
            tensor | plain | odd_json,
            lambda part: st.builds(
                lambda kind, items: {"kind": kind, "items": items},
                st.sampled_from(["list", "tuple", "dict"]),
                st.lists(part | st.lists(part, min_size=2, max_size=2), max_size=4),
            ),
            max_leaves=6,
        )
    )


def deep(levels: int, kind: str) -> str:
    """JSON nested so deeply."""
    opening, closing = {"list": ("[", "]"), "object": ('{"a":', "}"), "header": ('{"kind":"list","items":[', "]}")}[
        kind
    ]
    return opening * levels + "null" + closing * levels


odd_frames = (
    st.binary(max_size=40)
    | st.builds(lambda data: len(data).to_bytes(4, "big") + data, st.binary(max_size=200))
    | st.builds(
        lambda text: len(text).to_bytes(4, "big") + text.encode(),
        st.builds(deep, st.integers(1, 3000), st.sampled_from(["list", "object", "header"])),
    )
    | st.just(b"\xff\xff\xff\xff")
    | st.just(b"")
)
"""Bytes in the place of a message; none at all is a hang-up."""

cuts = st.lists(st.integers(0, 5000), min_size=1, max_size=4)
"""Places in a frame, from its start."""
notes = st.fixed_dictionaries(
    {"op": st.sampled_from(["build", "noted", "forward", ""]) | odd_texts},
    optional={"request": odd_json, "access": odd_json, "ok": odd_json, "facts": odd_json},
)
"""Messages that nobody asked for."""

Oddity = tuple[str, Any, int]
oddities: st.SearchStrategy[Oddity] = st.one_of(
    st.tuples(st.just("frame"), odd_frames, st.just(0)),
    st.tuples(st.just("message"), odd_json, st.just(0)),
    st.tuples(st.just("replace"), odd_json, st.integers(0, 1000)),
    st.tuples(st.just("replace"), odd_json, st.integers(0, 1000)),
    st.tuples(st.just("add"), st.tuples(odd_texts, odd_json), st.integers(0, 1000)),
    st.tuples(st.just("drop"), st.none(), st.integers(0, 1000)),
    st.tuples(st.just("header"), headers(), st.just(0)),
    st.tuples(st.just("failure"), st.tuples(odd_json, odd_json), st.integers(0, 1000)),
    st.tuples(st.just("before"), notes | odd_json, st.just(0)),
    st.tuples(st.just("after"), notes | odd_json, st.just(0)),
    st.tuples(st.just("bytes"), st.binary(max_size=4), st.integers(0, 5000)),
    st.tuples(st.just("cut"), st.none(), st.integers(0, 5000)),
    st.tuples(st.just("pieces"), cuts, st.just(0)),
    st.tuples(st.just("descriptors"), st.integers(1, 60), st.just(0)),
)
scripts = st.lists(st.tuples(st.integers(0, 30), oddities), min_size=1, max_size=6)
"""Which of a candidate's replies are odd, and how."""


def written(message: Any) -> bytes:
    """A frame of JSON, with what no honest writer would write."""
    text = json.dumps(message)
    for name, raw in RAW.items():
        text = text.replace(json.dumps(name), raw)
    data = text.encode()
    return len(data).to_bytes(4, "big") + data


def places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of every part of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, part in items for place in [(value, key), *places(part)]]


def frame(reply: dict[str, Any], oddity: Oddity | None) -> bytes:
    """What a candidate writes instead of `reply`."""
    if oddity is None:
        return written(reply)
    kind, value, number = oddity
    if kind == "frame":
        return value
    if kind == "message":
        return written(value)
    if kind == "before":
        return written(value) + written(reply)
    if kind == "after":
        return written(reply) + written(value)
    if kind in ("pieces", "descriptors"):
        return written(reply)  # `PlayedCandidate` writes it so
    if kind == "bytes":
        data = written(reply)
        at = 4 + number % (len(data) - 4)
        return (data[:at] + value + data[at + len(value) :])[: len(data)]
    if kind == "cut":
        data = written(reply)
        return data[: number % len(data)]
    reply = copy.deepcopy(reply)
    if kind == "failure":
        error = {"type": "E", "text": "t", "place": "", "exit": False, "out_of_memory": None}
        reply = {"ok": False, "error": {**error, "build_key": None}, "facts": FACTS}
        reply = copy.deepcopy(reply)
        for part in value:
            container, key = (found := places(reply["error"]))[number % len(found)]
            container[key] = part
        return written(reply)
    if kind == "header":
        return written({**reply, "header": value})
    if kind == "add":
        containers = [reply, *(c[k] for c, k in places(reply) if isinstance(c[k], dict))]
        containers[number % len(containers)][value[0]] = value[1]
        return written(reply)
    found = places(reply)
    container, key = found[number % len(found)]
    if kind == "drop":
        del container[key]
    else:
        container[key] = value
    return written(reply)


FACTS: dict[str, Any] = Facts(
    outputs=OutputFacts(),
    operators={"aten::mm": OpUse(count=1, elements=64)},
    hidden_exceptions=["E: x (line 1)"],
    changes=[Change(kind="flag", name="a", phase="forward", before="x", after="y")],
    accesses=[Access(event="open:w", detail="x", phase="import", line=1, count=2)],
    python_threads=["other"],
    kernels={"cbf29ce484222325": "k"},
    extensions=[ExtensionReport(loaded=True, calls_forward=1)],
).model_dump()


class PlayedCandidate:
    """The other end of one channel: right answers, with oddities from a script."""

    def __init__(self, sock: socket.socket, script: list[tuple[int, Oddity]], asks: list[Any]) -> None:
        self._socket, self._channel = sock, Channel(sock, accept_fds=True)
        self._script, self._asks = dict(script), list(asks)
        self._values: dict[str, Any] = {}
        self._offered: tuple[values.Header, list[torch.Tensor]] = ({}, [])
        self.said = 0

    def run(self) -> None:
        """Answer until somebody hangs up."""
        turn, fds = 0, list[int]()
        try:
            while True:
                request, fds = self._channel.receive()
                for ask in self._asks if request["op"] == "import" else []:
                    self._write(written({"op": "build", "request": ask}))
                    self.said += 1
                    _, built = self._channel.receive()
                    fds += built
                oddity = self._script.get(turn)
                self.said += oddity is not None
                turn += 1
                self._write(frame({"ok": True, **self._answer(request, fds)}, oddity), oddity)
                while fds:
                    os.close(fds.pop())
        except (ChannelClosed, ChannelGarbage, KeyError, OSError):  # KeyError: it was never sent what it is asked for
            pass
        finally:
            while fds:
                os.close(fds.pop())
            self._channel.close()

    def _write(self, data: bytes, oddity: Oddity | None = None) -> None:
        if not data:
            raise ChannelClosed
        kind, value, _ = oddity or ("", (), 0)
        inside = [place for place in value if 0 < place < len(data)] if kind == "pieces" else []
        self._socket.setblocking(True)
        if kind == "descriptors":
            socket.send_fds(self._socket, [data[:1]], [self._socket.fileno()] * value)
            data = data[1:]
        for start, end in itertools.pairwise(sorted({0, *inside, len(data)})):
            self._socket.sendall(data[start:end])
        self._socket.setblocking(False)
        if kind == "cut":
            raise ChannelClosed

    def _answer(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        operation = request["op"]
        if "header" in request:
            self._values[operation.replace("refill", "inputs")] = self._received(request["header"], fds)
        if operation == "import":
            return {"has_model": True, "facts": FACTS}
        if operation == "init":
            return {"state": {"linear.weight": [8, 8], "linear.bias": [8]}, "facts": FACTS}
        if operation in ("forward", "offer_outputs"):
            (x,), state = self._values["inputs"], self._values["weights"]
            outputs = torch.relu(x @ state["linear.weight"].t() + state["linear.bias"]), 4
            return self._offer(outputs) | ({"facts": FACTS} if operation == "forward" else {})
        if operation == "offer_inputs":
            return self._offer(self._values["inputs"])
        if operation == "fetch":
            buffer = SharedBuffer(os.dup(fds[0]), request["size"])
            values.write(self._offered[1], self._offered[0], buffer.tensor)
            buffer.close()
        return {
            "answer_traces": {"shares": {"equal": 0.5}},
            "report": {"facts": FACTS},
            "repeat": {"calls": 3},
        }.get(operation, {})

    def _offer(self, value: Any) -> dict[str, Any]:
        header, tensors, size = values.lay_out(value)
        self._offered = header, tensors
        return {"header": header, "bytes": size}

    @staticmethod
    def _received(header: values.Header, fds: list[int]) -> Any:
        if not fds:
            return values.read(header, torch.empty(0, dtype=torch.uint8), lambda view, _: view.clone())
        buffer = SharedBuffer(os.dup(fds[0]), os.fstat(fds[0]).st_size)
        value = values.read(header, buffer.tensor, lambda view, _: view.clone())
        buffer.close()
        return value


class PlayedServer(ForkServer):
    """In a fork server's place: each candidate is a thread, and a sleeping process that may be killed."""

    def __init__(self) -> None:
        self.script: list[tuple[int, Oddity]] = []
        self.asks: list[Any] = []
        self.said = 0
        self._players: list[tuple[threading.Thread, PlayedCandidate, int]] = []

    def spawn(self, request: dict[str, Any], sockets: tuple[int, int]) -> Spawned:
        """A candidate that follows `script` and first asks for the builds `asks`."""
        del request
        layers = ["pid_namespace", "scratch_quota"]
        os.write(sockets[1], json.dumps({"isolation": layers, "missing": [], "scratch": ""}).encode())
        player = PlayedCandidate(socket.socket(fileno=os.dup(sockets[0])), self.script, self.asks)
        thread = threading.Thread(target=player.run, daemon=True)
        pid = os.posix_spawn("/bin/sleep", ["sleep", "60"], {})
        self._players.append((thread, player, pid))
        thread.start()
        return Spawned(pid, os.pidfd_open(pid))

    def settle(self) -> None:
        """Wait for those that were spawned, and count what they said."""
        for thread, player, pid in self._players:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            thread.join()
            self.said += player.said
        self._players.clear()


class Refusing:
    """A builder that builds nothing."""

    def known(self, request: ExtensionRequest) -> BuildResult | None:
        """None: nothing is kept."""
        return None

    def build(self, request: ExtensionRequest) -> BuildResult:
        """As the real one answers a source that does not compile."""
        return BuildResult(status="compile_error", key=request.digest(), route="stock", message=request.name)

    def kernel_uses(self, result: BuildResult, processor: Multiprocessor) -> list[KernelUse]:
        """None: nothing is built."""
        return []


@dataclass
class Counted:
    """A builder, and how its builds ended."""

    builder: Any
    statuses: Counter[str] = field(default_factory=Counter)

    def known(self, request: ExtensionRequest) -> BuildResult | None:
        """None, so that each build is counted."""
        return None

    def build(self, request: ExtensionRequest) -> BuildResult:
        """As the builder does."""
        result = self.builder.build(request)
        self.statuses[f"{result.status} ({result.route})"] += 1
        return result

    def kernel_uses(self, result: BuildResult, processor: Multiprocessor) -> list[KernelUse]:
        """As the builder says."""
        return self.builder.kernel_uses(result, processor)


class Fuzz:
    """One executor under odd words. `statuses`: of all verdicts so far."""

    def __init__(self, builder: Any = None) -> None:
        self.server = PlayedServer()
        judging = Judging(protocols=("paper", "strict"), correctness_trials=1, seed=1)
        limits = Limits(import_timeout_s=1, forward_timeout_s=1)  # for those that announce more than they say
        self.builder = Counted(builder or Refusing())
        self._executor = Executor(self.server, self.builder, "cpu", limits=limits, judging=judging)
        self.statuses: Counter[str] = Counter()

    def verify(self, script: list[tuple[int, Oddity]], asks: list[Any], code: str = "import torch") -> list[Verdict]:
        """The verdicts of a candidate that behaves so, written and read back. Raises AssertionError for a host_error."""
        self.server.script, self.server.asks = script, asks
        job = Job(problem_id="fuzz", problem_code=PROBLEM, sample=0, code=code)
        try:
            verdicts = self._executor.verify(job)
        finally:
            self.server.settle()
        for verdict in verdicts:
            again = Verdict.model_validate(json.loads(to_line(verdict).encode("utf-8").decode("utf-8")))
            assert again.status == verdict.status
            assert verdict.status != "host_error", verdict.message
            self.statuses[verdict.functional_status] += 1
        return verdicts


good_request: dict[str, Any] = {
    "kind": "load_inline",
    "name": "e",
    "cpp_sources": ["torch::Tensor f(torch::Tensor x);"],
    "cuda_sources": ["#include <torch/extension.h>\n__global__ void k(float* p) { p[0] = 1; }"],
    "functions": [["f", "f"]],
}
_FRAGMENTS = r"""
__global__ void k ( float * p ) { } ; template < typename T > #include <torch/extension.h> #define M k #if 0 #endif
<<< 1 , 1 >>> ( x ) ; " ' /* */ // \ R"( )" asm(".incbin") __shared__ extern "C" namespace { %:include ??= #/**/include
#line 99999999999 "x" #pragma once #error PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) m.def("f", &f) torch::Tensor f
( torch::Tensor x ) return [=] operator ~ :: -> é 0x1p-3 1'000 u8"x" L'y'
""".split()  # noqa: SIM905
sources = (
    st.lists(st.sampled_from([*_FRAGMENTS, "\n", "\x00", "\\\n"]), max_size=40).map(" ".join)
    | st.builds(lambda mark, count: mark * count, st.sampled_from("([{<\"'#\\/"), st.integers(1, 3000))
    | odd_texts
)
_FLAGS = """
-O3 -std=c++20 -DX=1 -I/etc -x -o @file -Xcompiler --ptxas-options=-v -lc -Wl,-rpath,/ -fplugin=x -D -
""".split()  # noqa: SIM905
flags = st.lists(st.sampled_from(_FLAGS) | odd_texts, max_size=4)
names = st.sampled_from(["e", "a b", "../x", "e.so", "é", "a" * 199, "-o", "main"]) | odd_texts
files = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(
                [
                    "a.cpp",
                    "a.cu",
                    "x/y.h",
                    "a.cpp/z.h",
                    "../e.h",
                    "/e.h",
                    "cuda.cpp/x.h",
                    "extension.so/x.h",
                    "main_0.cpp",
                    "main_0.o/x",
                ]
            )
            | odd_texts,
            "text": sources,
        }
    ),
    max_size=4,
)
requests = st.one_of(
    st.fixed_dictionaries(
        {"kind": st.sampled_from(["load_inline", "load"]), "name": names},
        optional={
            "cpp_sources": st.lists(sources, max_size=2),
            "cuda_sources": st.lists(sources, max_size=2),
            "functions": st.none() | st.lists(st.tuples(odd_texts, odd_texts), max_size=3),
            "files": files,
            "headers": files,
            "extra_cflags": flags,
            "extra_cuda_cflags": flags,
            "extra_ldflags": flags,
            "extra_include_paths": flags,
            "with_cuda": st.none() | st.booleans(),
            "no_implicit_headers": st.booleans(),
            "is_standalone": st.booleans(),
        },
    ),
    st.builds(
        lambda field, part: {**good_request, field: part},
        st.sampled_from(sorted(ExtensionRequest.model_fields)),
        odd_json,
    ),
    odd_json,
)
"""Build requests, from nearly right to not at all."""
buildable = st.builds(
    lambda cpp, cuda, place: {
        **good_request,
        "cpp_sources": [f"{good_request['cpp_sources'][0]}\n{cpp}"],
        "cuda_sources": [f"{cuda}\n{good_request['cuda_sources'][0]}\n{place}"],
    },
    sources,
    sources,
    sources,
)
"""Requests that a builder reads: odd text around a kernel."""
asked = st.lists(requests, max_size=2)
"""What a candidate asks for while it is imported."""


_ECHO = """#!/bin/sh
out=
for word; do
    case "$last" in -o) out=$word;; esac
    last=$word
done
case "$PWD:$*" in
    *"/toolchains/"*:*-o*) : > "$out";;  # what the builder makes of its own sources
    *"/toolchains/"*:*-c*) ;;
    *:*-o*) for word; do case "$word" in *.cpp|*.o) cat "$word";; esac; done; exit 1;;
    *) exec g++ "$@";;
esac
"""


@contextlib.contextmanager
def builder(cache: Path, *, echoes: bool) -> Iterator[Builder]:
    """A builder for the CPU. `echoes`: its compiler compiles nothing, and says what it was given."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as environment:
        compiler = Path(folder, "echo")
        compiler.write_text(_ECHO)
        compiler.chmod(0o755)
        if echoes:
            environment.setenv("CXX", str(compiler))
        made = Builder(Path(folder, "cache") if echoes else cache, "cpu")
        with contextlib.closing(made.jail):
            made.jail.layers()  # starts what starts its compilers, whose descriptors stay open
            yield made


def chunks(count: Callable[[], int], wanted: int, first_seed: int, run: Callable[[int, int], None]) -> Iterator[int]:
    """Call `run(seed, examples)` until `count()` reaches `wanted`; yields the count after each call."""
    number = first_seed
    while count() < wanted:
        run(number, min(500, wanted))
        number += 1
        yield count()


def quiet(examples: int) -> settings:
    """Hypothesis as a source of examples: nothing stored, nothing timed."""
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),  # pyright: ignore[reportArgumentType]
    )


def fuzz(what: str, wanted: int, first_seed: int, scripts_of: Any, asked_for: Any, builder: Any = None) -> None:
    """Say and ask odd things until `wanted` were said, and print what came of it."""
    begun = time.monotonic()
    under_test = Fuzz(builder)

    def say(number: int, examples: int) -> None:
        @seed(number)
        @quiet(examples)
        @given(scripts_of, asked_for)
        def odd_words(script: list[tuple[int, Oddity]], asks: list[Any]) -> None:
            under_test.verify(script, asks)

        odd_words()

    descriptors = None

    def count() -> int:
        return under_test.builder.statuses.total() if builder else under_test.server.said

    for done in chunks(count, wanted, first_seed, say):
        print(f"\r{done} {what}, {time.monotonic() - begun:.0f} s", end="", file=sys.stderr, flush=True)
        there = len(os.listdir("/proc/self/fd"))
        descriptors = there if descriptors is None else descriptors
        assert there <= descriptors, f"{there - descriptors} descriptors were left open"
    seconds = time.monotonic() - begun
    print(f"\n{count()} {what} in {seconds:.0f} s, no exception, no host_error")
    print(
        f"verdicts: {dict(under_test.statuses.most_common())}; builds: {dict(under_test.builder.statuses.most_common())}"
    )


def main() -> int:
    """Fuzz, and say what was seen."""
    parser = argparse.ArgumentParser(description=inspect.cleandoc(__doc__ or "").splitlines()[0])
    parser.add_argument("--messages", type=int, default=100_000, help="odd messages on the channel")
    parser.add_argument("--builds", type=int, default=20_000, help="odd requests to a builder whose compiler echoes")
    parser.add_argument("--compiled", type=int, default=100, help="odd requests to a builder with the real compiler")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "dice" / "builds", help="build cache")
    options = parser.parse_args()
    fuzz("odd messages", options.messages, options.seed, scripts, asked)
    one = st.lists(requests | buildable, min_size=1, max_size=1)
    for count, echoes in ((options.builds, True), (options.compiled, False)):
        if count:
            with builder(options.cache, echoes=echoes) as made:
                name = "odd builds, echoed" if echoes else "odd builds, compiled"
                fuzz(name, count, options.seed, st.just([]), one, made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
