"""Candidates that say odd things: no text, number, shape or name of theirs goes beyond their own verdict.

`benchmarks/fuzz_verifier.py` draws what a candidate may say; here are some hundred of its examples, and real candidates.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from execution import HONEST, NoBuilder, honest_with, job
from hypothesis import given, seed

from dice.jsonl import to_line
from dice.kernels.grader.executor import Executor
from dice.kernels.records.job import Judging
from dice.kernels.records.verdict import Verdict
from dice.kernels.records.verdict_store import VerdictStore
from dice.kernels.sandbox.channel import ChannelGarbage
from dice.kernels.sandbox.fork_server import ForkServer
from dice.kernels.sandbox.messages import MAX_DEPTH, MAX_PARTS, Malformed, parse_message
from dice.kernels.sandbox.replies import Mixed, TimedCall, read_reply
from dice.kernels.sandbox.values import MAX_DEPTH as MAX_VALUE_DEPTH
from dice.kernels.sandbox.values import lay_out

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from fuzz_verifier import Fuzz, asked, quiet, scripts

BOTH = Judging(protocols=("paper", "strict"), correctness_trials=1)


@pytest.fixture(scope="module")
def executor(fork_server: ForkServer) -> Iterator[Executor]:
    with Executor(fork_server, NoBuilder(), "cpu", judging=BOTH) as value:
        yield value


def written(executor: Executor, code: str, folder: Path) -> Verdict:
    """The first verdict on a candidate, as the finished file has it."""
    task = job(code)
    store = VerdictStore(folder / "verdicts.jsonl", "settings", 2)
    store.add(executor.verify(task))
    store.finish([task])
    return Verdict.model_validate_json((folder / "verdicts.jsonl").read_bytes().splitlines()[0])


LONE = r"'\ud800'"
RENAMED = """
import ctypes, os, time
ctypes.CDLL(None).prctl(15, b'\\xff\\xfe', 0, 0, 0)
if os.fork() == 0:
    time.sleep(0.5)
    os._exit(0)
time.sleep(0.4)
"""
SLEEPER = f"import threading\nthreading.Thread(target=threading.Event().wait, name={LONE}, daemon=True).start()"

NOTES = """
import json, os, struct
access = {"event": "x", "detail": "y", "phase": "import", "line": 1, "count": 1}
note = json.dumps({"op": "noted", "access": access}).encode()
while True:
    try:
        os.write(3, struct.pack(">I", len(note)) + note)
    except BlockingIOError:
        pass
"""


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        pytest.param(honest_with(import_=NOTES), "runtime_error", "over 10000 notes", id="notes"),
        pytest.param(honest_with(import_=f"raise RuntimeError({LONE})"), "import_error", r"\ud800", id="at import"),
        pytest.param(honest_with(forward=f"raise RuntimeError({LONE})"), "runtime_error", r"\ud800", id="in forward"),
        pytest.param(honest_with(forward="raise RuntimeError('x' * 10**7)"), "runtime_error", "xxx", id="long"),
        pytest.param(
            honest_with(forward="class E(Exception):\n    def __str__(self): raise E\nraise E"),
            "runtime_error",
            "exit code 1",
            id="exception without words",
        ),
        pytest.param(
            honest_with(import_="try:\n    open('/nowhere/\\udcff', 'w')\nexcept OSError:\n    pass"),
            "correct",
            "",
            id="path",
        ),
        pytest.param(
            honest_with(import_="import os\nos.environ['\\udcff'] = '\\udcfe'"), "correct", "", id="environment"
        ),
        pytest.param(
            honest_with(forward=f"try:\n    raise OSError({LONE})\nexcept OSError:\n    pass"), "correct", "", id="hid"
        ),
        pytest.param(honest_with(forward=SLEEPER), "correct", "", id="thread"),
        pytest.param(honest_with(import_=RENAMED), "correct", "", id="process name"),
        pytest.param(
            honest_with(forward=f"y = torch.relu(self.linear(x))\nsetattr(y, {LONE}, 1)\nreturn y"),
            "correct",
            "",
            id="attribute",
        ),
        pytest.param(honest_with(init=f"self.register_buffer({LONE}, torch.zeros(1))"), "correct", "", id="state"),
        pytest.param(honest_with(forward=f"return {LONE}"), "wrong_shape", "got str", id="text"),
        pytest.param(honest_with(forward=f"return {{{LONE}: x}}"), "wrong_shape", "got dict", id="key"),
        pytest.param(honest_with(forward="return 2**70"), "wrong_shape", "got int", id="integer"),
        pytest.param(honest_with(forward="return 10**400"), "runtime_error", "an integer of 1329 bits", id="larger"),
        pytest.param(honest_with(forward="return 10**10**6"), "runtime_error", "bits", id="largest"),
        pytest.param(honest_with(forward="return float('nan')"), "wrong_shape", "got float", id="nan"),
        pytest.param(honest_with(import_="x = " + "+".join(["1"] * 900)), "correct", "", id="deep text"),
    ],
)
def test_odd_words_stay_in_the_verdict(executor: Executor, tmp_path: Path, code: str, status: str, said: str) -> None:
    verdict = written(executor, code, tmp_path)
    assert verdict.functional_status == status, verdict.message
    assert said in verdict.message
    assert len(verdict.message) <= 8000
    assert written(executor, HONEST, tmp_path / "after").functional_status == "correct"


def test_a_large_view_is_wrong_before_it_is_copied(executor: Executor, tmp_path: Path) -> None:
    """One element, seen as three gigabytes."""
    verdict = written(executor, honest_with(forward="return torch.zeros(1).expand(24000, 32000)"), tmp_path)
    assert verdict.functional_status == "wrong_shape"
    assert "expected shape (16, 64), got (24000, 32000)" in verdict.message
    assert "fetch" not in verdict.phase_seconds


def test_a_value_that_grows_after_the_trials_is_not_copied(executor: Executor, tmp_path: Path) -> None:
    grows = "self.n = getattr(self, 'n', 0) + 1\nif self.n > 1:\n    return torch.zeros(1).expand(24000, 32000)"
    verdict = written(executor, honest_with(forward=grows), tmp_path)
    assert verdict.functional_status == "runtime_error"
    assert "returned 2.86 GiB of tensors" in verdict.message


def test_a_text_that_the_checks_cannot_read_is_the_candidates_failure(
    executor: Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dice.kernels.grader import sequence

    def too_deep(*_: Any) -> None:
        raise RecursionError("maximum recursion depth exceeded")

    monkeypatch.setattr(sequence, "findings", too_deep)
    verdict = written(executor, HONEST, tmp_path)
    assert verdict.functional_status == "import_error"
    assert "cannot be checked (RecursionError" in verdict.message


def test_a_text_that_is_too_long_to_be_read_is_not_correct(executor: Executor, tmp_path: Path) -> None:
    verdict = written(executor, HONEST + "\n#" + "." * (1 << 20), tmp_path)
    assert verdict.functional_status == "import_error"
    assert "1,048,576 are read at most" in verdict.message


@pytest.fixture(scope="module")
def fuzz() -> Fuzz:
    return Fuzz()


@seed(0)
@quiet(150)
@given(script=scripts, asks=asked)
def test_no_message_ends_the_harness(fuzz: Fuzz, script: Any, asks: list[Any]) -> None:
    fuzz.verify(script, asks)


def test_a_played_candidate_without_oddities_is_correct(fuzz: Fuzz) -> None:
    """So what is replaced above are the words of a right one, at every stage."""
    assert [verdict.message for verdict in fuzz.verify([], []) if verdict.functional_status != "correct"] == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"3",
        b"{",
        b"\xff{}",
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":1e999}',
        b'{"a":9223372036854775808}',
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"a":' + b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1) + b"}",
        b'{"a":' + b"[" * 100_000 + b"}",
        b"," * (MAX_PARTS + 1),
    ],
    ids=lambda data: data[:20],
)
def test_bytes_that_are_no_message(data: bytes) -> None:
    with pytest.raises(Malformed):
        parse_message(data)


def test_a_message_may_be_as_deep_as_any_header() -> None:
    assert parse_message(b'{"a":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}")
    value: Any = 1.0
    for _ in range(MAX_VALUE_DEPTH):
        value = {"key": value}
    assert parse_message(json.dumps({"header": lay_out(value)[0]}).encode())


def test_a_message_is_clean_whatever_its_texts_are() -> None:
    message = parse_message(b'{"\\ud800":["a\\udfff", 9223372036854775807, 1.5, true, null]}')
    assert message == {"\\ud800": ["a\\udfff", 2**63 - 1, 1.5, True, None]}


def test_a_line_holds_every_text() -> None:
    """A lone surrogate is written as JSON's escape for it, and comes back."""
    row = {"text": "\ud800\u2028\x00é", "\udfff": 1}
    line = to_line(row).encode()
    assert b"\n" not in line
    assert json.loads(line) == row


def test_pieces_without_a_kind_are_garbage() -> None:
    message = {"ok": True, "pieces": {"apart": 1}, "staged": None, "joined": False}
    with pytest.raises(ChannelGarbage, match="pieces"):
        read_reply(message, Mixed)


def test_no_time_is_so_short_that_a_ratio_to_it_is_infinite() -> None:
    names = ("event_ms", "in_process_ms", "drain_ms", "launch_ms")
    message = {"ok": True, "times": dict.fromkeys(names, 5e-324) | {"queued": True}}
    reply = read_reply(message, TimedCall)
    assert isinstance(reply, TimedCall)
    assert reply.times.event_ms == reply.times.launch_ms == 0.0
