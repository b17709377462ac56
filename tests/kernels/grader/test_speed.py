"""Timed calls: the input sets, what is checked of the outputs, and who may run meanwhile; the GPU is left out."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from dice.kernels.grader import speed
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.record import Record
from dice.kernels.grader.speed import Measurement
from dice.kernels.records.evidence import RunEvidence
from dice.kernels.records.verdict import Protocol, Speedup
from dice.kernels.sandbox.launch_ledger import Reading
from dice.kernels.sandbox.replies import Done, Times
from dice.kernels.sandbox.session import CandidateFailure
from dice.kernels.timing import disagree


class Run:
    """What `Measurement` asks of a candidate's run, counted."""

    inputs_change = advances = False

    def __init__(self, input_bytes: int) -> None:
        self.reference = SimpleNamespace(input_bytes=input_bytes)
        self.record = SimpleNamespace(phase=lambda name: contextlib.nullcontext())
        self.drawn = 0
        self.sent: list[int] = []

    def gpu(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def ask(self, op: str, kind: type[Done]) -> None:
        assert op == "forget"

    def draw_inputs(self, seed: int) -> list[Any]:
        self.drawn += 1
        return [torch.tensor([float(seed)])]

    def send(self, op: str, inputs: list[Any], slot: int) -> None:
        assert op == "inputs"
        self.sent.append(slot)


@pytest.mark.parametrize(
    ("input_bytes", "wanted", "sets"), [(4, 5, 5), (1 << 29, 5, 4), (6 << 30, 5, 2), (6 << 30, 1, 1), (1 << 30, 2, 2)]
)
def test_no_input_is_drawn_in_vain(input_bytes: int, wanted: int, sets: int) -> None:
    watch, run = object.__new__(Measurement), Run(input_bytes)
    watch.run, watch.sets, watch.drawn, watch.device = run, [], [], torch.device("cpu")  # pyright: ignore[reportAttributeAccessIssue]
    watch.provide_sets(wanted)
    assert sets == run.drawn == len(watch.sets)
    assert run.sent == list(range(sets))
    assert len({float(inputs[0]) for inputs in watch.sets}) == sets


class Doubling(Run):
    """A candidate that doubles its input in place, as the problem does, or sets it to zero."""

    inputs_change = True

    def __init__(self, factor: float) -> None:
        super().__init__(4)
        self.place = SimpleNamespace(device=torch.device("cpu"))
        self.factor, self.slots, self.out = factor, {}, torch.zeros(1)

    def send(self, op: str, inputs: list[Any], slot: int) -> None:
        self.slots[slot] = [tensor.clone() for tensor in inputs]

    def ask(self, op: str, kind: type, **request: Any) -> Any:
        if op == "go":
            for place in (request["before"], request["slot"]):
                self.out = self.slots[place][0].mul_(self.factor)
        return SimpleNamespace(times=None)

    def fetch(self, offer: Any, like: Any) -> torch.Tensor:
        return self.out


@pytest.mark.parametrize(("factor", "wrong"), [(2.0, 0), (3.0, 5)])
def test_a_problem_that_overwrites_its_inputs_gets_them_anew(factor: float, wrong: int) -> None:
    watch, run = object.__new__(Measurement), Doubling(factor)
    watch.run, watch.sets, watch.drawn, watch.device = run, [], [], torch.device("cpu")  # pyright: ignore[reportAttributeAccessIssue]
    watch.checked = watch.wrong = watch.output_bytes = watch.flush_bytes = 0
    watch.provide_sets(2)
    assert len(watch.sets) == 2
    for call in range(5):
        watch.candidate(call % 2, (call + 1) % 2, seed=call, fills=0)
        watch.check(lambda x: x.mul_(2.0), call % 2, call, "strict")  # pyright: ignore[reportArgumentType]
    assert (watch.checked, watch.wrong) == (5, wrong)


class Series(Run):
    """A candidate that adds one, timed in series. `remembers`: it returns what it gave for the address before."""

    def __init__(self, remembers: bool) -> None:
        super().__init__(4)
        self.place = SimpleNamespace(device=torch.device("cpu"), judging=SimpleNamespace(timing_trials=40))
        self.record = SimpleNamespace(
            phase=lambda name: contextlib.nullcontext(), runtime_ms={}, reference_ms={}, speedup={}, notes=[]
        )
        self.reference = SimpleNamespace(input_bytes=4, model=lambda seed: lambda x: x + 1)
        self.weights_seed, self.remembers = 0, remembers
        self.evidence = RunEvidence(backend="cuda", reached="timing")
        self.ledger = SimpleNamespace(deal=lambda: None, read=lambda: Reading(launches={"add": 3}))
        self.counts_launches = True
        self.session = SimpleNamespace(frozen=self.frozen)
        self.asleep = False
        self.answers: dict[int, torch.Tensor] = {}
        self.calls: list[tuple[float, int]] = []
        self.out = self.slot = torch.zeros(1)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        self.asleep = True
        yield
        self.asleep = False

    def send(self, op: str, inputs: list[Any], slot: int) -> None:
        assert not self.asleep
        self.slot = inputs[0].clone() if op == "inputs" else self.slot.copy_(inputs[0])

    def ask(self, op: str, kind: type, **request: Any) -> Any:
        assert not self.asleep
        if op == "series":
            self.calls.append((float(self.slot), request["calls"]))
            self.out = self.slot + 1
            if self.remembers:
                self.out = self.answers.setdefault(self.slot.data_ptr(), self.out)
            one = Times(event_ms=1.0, in_process_ms=1.0, drain_ms=0.0, launch_ms=0.0, queued=False)
            return SimpleNamespace(times=[one] * request["calls"])
        return SimpleNamespace()

    def fetch(self, offer: Any, like: Any) -> torch.Tensor:
        return self.out


@pytest.mark.parametrize(("remembers", "wrong"), [(False, 0), (True, 3)])
def test_papers_timed_calls_get_new_values_at_the_same_address(
    remembers: bool, wrong: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, run = object.__new__(Measurement), Series(remembers)
    watch.run, watch.sets, watch.drawn, watch.device = run, [], [], torch.device("cpu")  # pyright: ignore[reportAttributeAccessIssue]
    watch.checked = watch.wrong = watch.output_bytes = 0
    watch.empty_ms, watch.clocked = [0.0], None
    timed_asleep: list[bool] = []

    def timed(call: Callable[[], Any], fills: int = 0) -> tuple[Any, SimpleNamespace]:
        timed_asleep.append(run.asleep)
        return call(), SimpleNamespace(event_ms=2.0)

    watch.timer = SimpleNamespace(time=timed)  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setattr(watch, "warm_up", lambda model: 40)
    watch.provide("paper")
    watch.paper()
    assert (watch.checked, watch.wrong) == (4, wrong)
    assert len({values for values, _ in run.calls}) == 4
    assert run.record.runtime_ms["paper"].n == run.record.reference_ms["paper"].n == 40
    assert run.record.speedup["paper"].median == 2.0
    assert run.evidence.timed_launches == 3
    assert timed_asleep == [True] * 40  # no process of the candidate runs beside the reference


class Host:
    """A host with a clock of its own: a request waits for a processor now and then, the calls of a series take their time."""

    def __init__(self, own_ms: float, true_ms: float, stalls_ms: float) -> None:
        self.own_ms, self.true_ms, self.stalls_ms = own_ms, true_ms, stalls_ms
        self.now_s, self.requests = 0.0, []
        self.counts_launches = False
        self.ledger = SimpleNamespace(deal=lambda: None)

    def ask(self, op: str, kind: type, calls: int, **request: Any) -> Any:
        self.requests.append(calls)
        self.now_s += (self.stalls_ms + calls * self.true_ms) / 1e3
        one = Times(event_ms=0.01, in_process_ms=self.own_ms, drain_ms=0.0, launch_ms=0.0, queued=False)
        return SimpleNamespace(times=[one] * calls)


@pytest.mark.parametrize(
    ("own_ms", "true_ms", "stalls_ms", "series", "patched"),
    [
        (0.064, 0.09, 0.0, 1, False),
        (0.064, 0.09, 12.0, 5, False),  # 20 calls: 0.69 ms each by the host's clock; 320 calls: 0.13 ms
        (0.27, 0.30, 14.0, 4, False),
        (0.064, 0.40, 0.0, 7, True),  # 1,280 calls last longer than half a second
        (0.064, 0.40, 12.0, 7, True),
        (20.0, 31.0, 12.0, 1, True),
    ],
)
def test_a_loaded_host_is_no_patched_clock(
    own_ms: float, true_ms: float, stalls_ms: float, series: int, patched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, host = object.__new__(Measurement), Host(own_ms, true_ms, stalls_ms)
    watch.run, watch.empty_ms, watch.clocked = host, [0.0], None  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setattr(speed.time, "perf_counter", lambda: host.now_s)
    first = watch.clocked_series(20)
    assert host.requests == [20 << number for number in range(series)]
    assert len(first.event_ms) == 20
    assert watch.clocked is not None
    assert disagree(own_ms, watch.clocked.host_ms) == patched


def test_each_call_of_a_request_has_the_time_of_one_within_that_of_all() -> None:
    watch, run = object.__new__(Measurement), object.__new__(CandidateRun)
    limits_s: list[float] = []

    def ask(op: str, kind: type, timeout_s: float, **request: Any) -> Any:
        limits_s.append(timeout_s)
        one = Times(event_ms=1.0, in_process_ms=1.0, drain_ms=0.0, launch_ms=0.0, queued=False)
        return SimpleNamespace(times=[one] * request.get("calls", 1))

    place: Any = SimpleNamespace(limits=SimpleNamespace(forward_timeout_s=2.0, total_timeout_s=60.0))
    run.place, run.inputs_change = place, False
    run.record = SimpleNamespace(builds=[SimpleNamespace(status="built", launches="unknown")])  # pyright: ignore[reportAttributeAccessIssue]
    run._launches = SimpleNamespace(deal=lambda: None)  # pyright: ignore[reportAttributeAccessIssue]
    run._session = SimpleNamespace(ask=ask, build_s=0.0)  # pyright: ignore[reportAttributeAccessIssue]
    run._deadline = time.monotonic() + 60
    watch.run, watch.flush_bytes = run, 0
    for calls in (0, 1, 10, 100):
        watch.candidate_series(0, calls)
    watch.candidate(0, 0, seed=0, fills=0)
    assert limits_s == [2.0, 2.0, 20.0, pytest.approx(60, abs=5), 4.0]


class Timed:
    """A measurement of both protocols, whose candidate ends under `ends`, or which is not `frozen` from `thawed` on."""

    def __init__(self, ends: str = "", thawed: str = "") -> None:
        self.protocols, self.clocked = ["paper", "strict"], None
        self.ends, self.thawed = ends, thawed
        self.run: Any = SimpleNamespace(
            gpu=lambda alone=False: contextlib.nullcontext(), record=Record(), end=lambda: setattr(self.run, "session", None),
            session=SimpleNamespace(not_frozen=""),
        )  # fmt: skip
        self.run.fail_under = partial(CandidateRun.fail_under, self.run)

    def provide(self, protocol: Protocol) -> None: ...

    def paper(self) -> None:
        self.under("paper")

    def strict(self) -> None:
        self.under("strict")

    def under(self, protocol: Protocol) -> None:
        if protocol == self.ends:
            raise CandidateFailure("timeout", "no end")
        if protocol == self.thawed:
            self.run.session.not_frozen = "no such process"
        self.run.record.speedup[protocol] = Speedup(median=2.0, ci_low=1.0, ci_high=3.0)


def test_what_ends_a_candidate_in_timing_under_a_later_protocol_leaves_the_first() -> None:
    timed: Any = Timed(ends="strict")
    speed.measure(timed)
    record = timed.run.record
    assert (record.status, record.failures) == ("correct", {"strict": ("timeout", "no end")})
    assert [*record.speedup] == ["paper"]
    with pytest.raises(CandidateFailure):
        speed.measure(Timed(ends="paper"))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("thawed", "left"), [("", ["paper", "strict"]), ("strict", ["paper"]), ("paper", [])])
def test_no_speed_up_is_told_where_the_candidate_ran_beside_the_reference(thawed: str, left: list[str]) -> None:
    timed: Any = Timed(thawed=thawed)
    speed.measure(timed)
    record = timed.run.record
    assert [*record.speedup] == left
    assert len(record.notes) == 2 - len(left)
    assert all("no speed-up" in note and "no such process" in note for note in record.notes)
