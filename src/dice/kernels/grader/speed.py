"""Times one candidate against its reference, alone on the GPU; `dice.kernels.timing` has the statistics.

The candidate's process times its calls with CUDA events through `CallTimer`; the reference runs in the grader through
the same code. The grader checks the events against its own clock over a whole series of calls that it requests at once,
so that the cost of the request is spread over all calls.

`paper` times a call with its launches, as KernelBench does. `strict` times the GPU: each call waits behind memory fills
that last longer than its launches (`QueuedCalls`), so the time contains nothing that the host does. A candidate that
uses more than the current stream is timed from an idle GPU, with its launches: its kernels could run during the fills.
"""

from __future__ import annotations

import random
import secrets
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import torch

from dice.kernels import timing
from dice.kernels.candidate.call_timer import CallTimer
from dice.kernels.candidate.refill import refilled
from dice.kernels.grader.agreement import compare
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.explaining import card_of
from dice.kernels.grader.hidden_launches import QueuedCalls, Sides, settled
from dice.kernels.grader.reference import Trial, to_device
from dice.kernels.records.evidence import Clocks, OpUse
from dice.kernels.records.verdict import Protocol
from dice.kernels.sandbox import values
from dice.kernels.sandbox.cuda_runtime import CudaRuntime
from dice.kernels.sandbox.replies import Done, Offer, TimedCall, TimedSeries, Times
from dice.kernels.sandbox.seeding import seed_generators
from dice.kernels.sandbox.session import CandidateFailure

BUDGET_S = 30.0
"""Wall time for the timed calls of one program under one protocol; slower programs get fewer calls."""
MIN_CALLS = 10
_EMPTY_CALLS = 20
_CLOCKED_CALLS = 20
_CHECKED_CALLS = 6
_PARTS = 4
"""Parts of the paper protocol's timed calls. The inputs get new values before each, and its last output is checked."""
_TWO_PARTS_BYTES = 256 << 20
"""Above this size of the inputs there are two parts: values for all of them are drawn ahead, and held at once."""
_LONGEST_SERIES_MS = 500.0
"""A series that lasts so long by the grader's clock is not repeated with more calls: what a loaded host adds to a request, a
few slices of its scheduler, no longer counts in it."""
_HOST_PAUSE_S, _HOST_CALLS = 0.2, 16
"""Before a candidate counts as host-bound: wait so long, then make so many calls, enough for the lower decile."""
_INPUT_BYTES = 2 << 30
"""Device memory for the input sets of the strict protocol, on each side."""
_INPUT_SECONDS = 2.0
"""Time for making input sets; where they take long, fewer sets are made and each is used several times."""
_FLUSH_FACTOR = 4
_BRIEF_CALLS = 1000
"""Programs with at least so many calls in `BUDGET_S` are tried behind more and more fills."""

WITH_LAUNCHES = (
    "strict: the {}'s times include launches: it waits for the GPU, uses several streams or launches for long"
)
NOT_FROZEN = "{}: no speed-up, since the candidate's processes could not be stopped while the reference was timed: {}"
"""What the candidate does meanwhile makes the reference slower, and a speed-up larger."""
HOST_BOUND = "strict: bound by the host: {:.3g} ms per call against {:.3g} ms of the reference, whatever the GPU takes"


@dataclass
class _Series:
    """Times of calls by the candidate: its own, and the grader's per call."""

    event_ms: list[float] = field(default_factory=list)
    in_process_ms: list[float] = field(default_factory=list)
    drain_ms: list[float] = field(default_factory=list)
    host_ms: float = 0.0
    """Mean per call by the grader's clock over the whole series."""

    def add(self, times: Times) -> None:
        self.event_ms.append(times.event_ms)
        self.in_process_ms.append(times.in_process_ms)
        self.drain_ms.append(times.drain_ms)


def prepare(run: CandidateRun) -> Measurement | None:
    """Inputs for the first timed calls; None where none are wanted. In the turn of the trials: before another turn, all
    timings that wait would be done. Raises CandidateFailure."""
    judging = run.place.judging
    if not (judging.measure_time and run.place.backend == "cuda" and run.standing()):
        return None
    run.enter("timing", "timing")
    measurement = Measurement(run)
    measurement.provide(measurement.protocols[0])
    return measurement


def measure(measurement: Measurement) -> None:
    """Time candidate and reference under each protocol that the candidate satisfies. Raises CandidateFailure for the first;
    under a later one the candidate fails that protocol alone: what the first says does not depend on what else is asked."""
    run, session = measurement.run, measurement.run.session
    for index, protocol in enumerate(measurement.protocols):
        try:
            if index:
                with run.gpu():
                    measurement.provide(protocol)
            with run.gpu(alone=True), run.record.phase("timing"):
                if protocol == "paper":
                    measurement.paper()
                else:
                    measurement.strict()
        except CandidateFailure as failure:
            if not index:
                raise
            run.fail_under(protocol, failure)
            break
        if session.not_frozen and run.record.speedup.pop(protocol, None):
            run.record.notes.append(NOT_FROZEN.format(protocol, session.not_frozen))
    _take_clocks(measurement)


class Measurement:
    """Timed calls on both sides, on the same input sets."""

    def __init__(self, run: CandidateRun) -> None:
        self.run = run
        self.protocols: list[Protocol] = [
            name for name in run.place.judging.protocols if run.record.comparisons[name].ok
        ]
        self.device = run.place.device
        self.timer = CallTimer(CudaRuntime(), self.device)
        self.flush_bytes = _FLUSH_FACTOR * torch.cuda.get_device_properties(self.device).L2_cache_size
        self.sets: list[list[Any]] = []
        self.drawn: list[list[Any]] = []
        """The values of each set, where the problem overwrites its inputs."""
        self.fresh: list[list[Any]] = []
        """Further values for the first set."""
        self.clocked: _Series | None = None
        """The series whose whole time the grader measured as well."""
        self.empty_ms: list[float] = []
        self.checked = self.wrong = 0
        self.output_bytes = 0

    # ---- inputs ----

    def provide(self, protocol: Protocol) -> None:
        """Make what the timed calls of a protocol need, on both sides, while others may use the GPU."""
        with self.run.record.phase("timing_inputs"):
            self.provide_sets(1 if protocol == "paper" else 2 * self.run.place.judging.strict_rounds)
            if protocol == "paper" and not self.run.inputs_change:
                wanted = 1 if self.run.reference.input_bytes > _TWO_PARTS_BYTES else _PARTS - 1
                self.fresh = [self.run.draw_inputs(secrets.randbits(48)) for _ in range(wanted)]

    def provide_sets(self, wanted: int) -> None:
        """Make up to `wanted` different input sets."""
        run, begun = self.run, time.monotonic()
        run.ask("forget", Done)
        self.sets.clear()
        self.drawn.clear()
        while len(self.sets) < wanted:
            together = (len(self.sets) + 1) * run.reference.input_bytes
            enough = together > _INPUT_BYTES or time.monotonic() - begun > _INPUT_SECONDS
            if len(self.sets) >= min(wanted, 2) and enough:
                break  # before one more is drawn: gigabytes take seconds on the CPU
            inputs = run.draw_inputs(secrets.randbits(48))
            run.send("inputs", inputs, slot=len(self.sets))
            self.sets.append(to_device(inputs, self.device))
            if run.inputs_change:
                self.drawn.append(inputs)

    def renew(self, inputs: list[Any]) -> None:
        """New values in the memory of the first set, on both sides."""
        self.run.send("refill", inputs, slot=0)
        self.sets[0] = refilled(self.sets[0], inputs)

    def own_inputs(self, slot: int) -> list[Any]:
        """A set for the reference, with the values that were drawn."""
        return to_device(self.drawn[slot], self.device) if self.run.inputs_change else self.sets[slot]

    # ---- calls ----

    def candidate_series(self, slot: int, calls: int, seed: int = 0) -> _Series:
        """Timed calls of the candidate, one after another as the paper times them. The grader times the whole series."""
        series = _Series()
        self.run.ledger.deal()
        begun = time.perf_counter()
        rows = self.run.ask("series", TimedSeries, forwards=calls, slot=slot, calls=calls, seed=seed).times
        series.host_ms = (time.perf_counter() - begun) * 1e3 / max(1, calls)
        if len(rows) != calls:
            raise CandidateFailure("runtime_error", "wrote into the verifier's channel: not the times of a series")
        for row in rows:
            series.add(row)
        if calls and self.run.counts_launches:
            evidence, launches = self.run.evidence, sum(self.run.ledger.read().launches.values())
            earlier = evidence.timed_launches
            evidence.timed_launches = launches if earlier is None else min(earlier, launches)
        return series

    def clocked_series(self, calls: int, seed: int = 0) -> _Series:
        """A series on slot 0, by which the two clocks are compared. Where they disagree, that may be the host, which stalled
        in a request: it weighs less in the longer series that are compared then, up to `_LONGEST_SERIES_MS`. The first
        series is returned, the last one's clocks are kept."""
        empty_ms = statistics.median(self.empty_ms)
        first = self.clocked = self.candidate_series(0, calls, seed)
        while calls * self.clocked.host_ms < _LONGEST_SERIES_MS:
            own_ms = statistics.fmean(self.clocked.in_process_ms)
            if not timing.disagree(own_ms, self.clocked.host_ms - empty_ms / max(1, calls)):
                break
            calls *= 2
            self.clocked = self.candidate_series(0, calls, seed)
        return first

    def candidate(self, slot: int, before: int, seed: int, fills: int) -> Times:
        """One timed call of the candidate on a flushed cache."""
        if self.run.inputs_change:
            for place in sorted({slot, before}):
                self.run.send("refill", self.drawn[place], slot=place)
        request = {"slot": slot, "before": before, "seed": seed, "flush_bytes": self.flush_bytes, "fills": fills}
        return self.run.ask("go", TimedCall, forwards=2, **request).times

    def reference(self, model: Callable[..., Any], slot: int, before: int, seed: int, fills: int) -> Times:
        """The same for the reference."""
        inputs = self.own_inputs(slot)
        with self.run.session.frozen(), torch.no_grad():
            model(*self.own_inputs(before))
            self.timer.prepare(self.flush_bytes)
            seed_generators(seed, self.run.place.device)
            return Times(**asdict(self.timer.time(lambda: model(*inputs), fills)[1]))

    def reference_series(self, model: Callable[..., Any], slot: int, calls: int) -> list[float]:
        """Event times of the reference, one call after another."""
        with self.run.session.frozen(), torch.no_grad():
            return [self.timer.time(lambda: model(*self.sets[slot]))[1].event_ms for _ in range(calls)]

    def warm_up(self, model: torch.nn.Module) -> int:
        """Untimed calls on both sides, and the cost of an empty request. Returns how many calls fit the budget."""
        count = max(1, self.run.place.judging.warmup_trials)
        self.candidate_series(0, count)
        self.reference_series(model, 0, count)
        # The calls before paid for lazy loading and tuning on both sides; these show how long one call takes.
        begun = time.perf_counter()
        self.candidate_series(0, 1)
        middle = time.perf_counter()
        self.reference_series(model, 0, 1)
        slowest_s = max(middle - begun, time.perf_counter() - middle)
        while len(self.empty_ms) < _EMPTY_CALLS:
            begun = time.perf_counter()
            self.run.ask("series", TimedSeries, slot=0, calls=0, seed=0)
            self.empty_ms.append((time.perf_counter() - begun) * 1e3)
        return max(MIN_CALLS, int(BUDGET_S / max(slowest_s, 1e-6)))

    def note_fewer(self, protocol: Protocol, wanted: int, done: int) -> None:
        """Note in the verdict that there was no time for all calls."""
        if done < wanted:
            self.run.record.notes.append(f"{protocol}: timed {done} of {wanted} calls, since each takes long")

    # ---- protocols ----

    def paper(self) -> None:
        """The paper's protocol: warm-up, then series of candidate and reference on one input set, in parts. The inputs get
        new values before each part, where they are, and the part's last output is checked."""
        run = self.run
        model = run.reference.model(run.weights_seed)
        wanted = run.place.judging.timing_trials
        calls = min(wanted, self.warm_up(model))
        candidate_ms: list[float] = []
        reference_ms: list[float] = []
        draw = random.SystemRandom()
        parts = timing.parts(calls, 1 + len(self.fresh), draw)
        longest = parts.index(max(parts))
        for index, part in enumerate(parts):
            seed = draw.getrandbits(32)
            if index:
                self.renew(self.fresh[index - 1])
            if index == longest:
                series = self.clocked_series(part, seed)
            else:
                series = self.candidate_series(0, part, seed)
            if not run.inputs_change:  # else the calls of a series have changed their inputs by now
                self.check(model, 0, seed, "paper")
            candidate_ms += series.event_ms
            reference_ms += self.reference_series(model, 0, part)
        self.fresh.clear()
        self.note_fewer("paper", wanted, calls)
        run.record.runtime_ms["paper"] = timing.summary(candidate_ms)
        run.record.reference_ms["paper"] = timing.summary(reference_ms)
        speedup = timing.ratio_of_means(candidate_ms, reference_ms)
        if speedup is not None:
            run.record.speedup["paper"] = speedup

    def strict(self) -> None:
        """Rounds of ABBA behind fills that flush the cache. Some timed outputs, chosen at random, are checked.

        Each timed call follows an untimed one on other inputs in the same process, on both sides: the host launches
        more slowly right after it waited for a request than in a loop.
        """
        run, judging, sets = self.run, self.run.place.judging, len(self.sets)
        model = run.reference.model(run.weights_seed)
        fitting = self.warm_up(model)
        rounds = min(judging.strict_rounds, max(MIN_CALLS // 2, fitting // 4))
        self.clocked_series(min(_CLOCKED_CALLS, 2 * rounds))
        draw = random.SystemRandom()
        checked = set(draw.sample(range(2 * rounds), min(_CHECKED_CALLS, 2 * rounds)))
        last = 2 * rounds % sets, (2 * rounds + 1) % sets
        brief = fitting > _BRIEF_CALLS
        mine = QueuedCalls(lambda fills: self.candidate(*last, 0, fills), possible=run.one_stream, brief=brief)
        theirs = QueuedCalls(lambda fills: self.reference(model, *last, 0, fills), possible=True, brief=brief)
        pairs: dict[str, list[tuple[float, float]]] = {"candidate": [], "reference": []}
        for number, turns in enumerate(timing.abba(rounds, draw)):
            times: dict[str, list[float]] = {"candidate": [], "reference": []}
            for turn in turns:
                call = 2 * number + len(times[turn])
                slot, before, seed = call % sets, (call + 1) % sets, draw.getrandbits(32)
                if turn == "reference":
                    times[turn].append(theirs.time(partial(self.reference, model, slot, before, seed)))
                    continue
                times[turn].append(mine.time(partial(self.candidate, slot, before, seed)))
                if call in checked and not run.inputs_change:  # else each side has changed its inputs by now
                    self.check(model, slot, seed, "strict")
            for turn, (first, second) in times.items():
                pairs[turn].append((first, second))
        self.note_fewer("strict", judging.strict_rounds, rounds)
        run.record.runtime_ms["strict"] = timing.summary([times.event_ms for times in mine.times])
        run.record.reference_ms["strict"] = timing.summary([times.event_ms for times in theirs.times])
        evidence = run.evidence

        def sides() -> Sides:
            return (
                mine.side(pairs["candidate"], _steps(evidence.candidate_ops, evidence.launches)),
                theirs.side(pairs["reference"], _steps(evidence.reference_ops, None)),
            )

        def measure_again() -> None:
            time.sleep(_HOST_PAUSE_S)
            for _ in range(_HOST_CALLS):
                mine.time(partial(self.candidate, *last, 0))
                theirs.time(partial(self.reference, model, *last, 0))

        candidate, reference = settled(sides, measure_again)
        for program, calls in (("candidate", mine), ("reference", theirs)):
            if not calls.without_launches:
                run.record.notes.append(WITH_LAUNCHES.format(program))
        # A fixed seed: the same times always give the same interval.
        speedup = timing.paired_speedup(candidate, reference, random.Random(0))
        if speedup is not None:
            run.record.speedup["strict"] = speedup
            if timing.is_host_bound(candidate, reference):
                run.record.notes.append(HOST_BOUND.format(candidate.whole_ms, reference.whole_ms))
        if judging.compile_baseline:
            self.compiled(model, sets, rounds, theirs.fills)

    def check(self, model: torch.nn.Module, slot: int, seed: int, protocol: Protocol) -> None:
        """Fetch the output of the call just timed and compare it with the reference's, unless that follows earlier calls."""
        run = self.run
        if run.advances:
            return
        offer = run.ask("offer_outputs", Offer)
        seed_generators(seed, run.place.device)
        with torch.no_grad():
            expected = model(*self.own_inputs(slot))
        actual = run.fetch(offer, expected)
        self.checked += 1
        self.wrong += not compare(run, Trial(list(self.own_inputs(slot)), seed, expected), actual, protocol).ok
        self.output_bytes = max(self.output_bytes, values.lay_out(expected)[2])

    def compiled(self, model: torch.nn.Module, sets: int, rounds: int, fills: int) -> None:
        """Time torch.compile of the reference. What it cannot compile is a note in the verdict."""
        run = self.run
        try:
            torch.compiler.reset()
            compiled = torch.compile(model)
            self.reference_series(compiled, 0, 3)
            calls = range(2 * rounds)
            times = [self.reference(compiled, call % sets, (call + 1) % sets, call, fills).event_ms for call in calls]
        except Exception as error:  # noqa: BLE001 - whatever the compiler raises, this baseline is missing then
            run.record.notes.append(f"no torch.compile baseline: {type(error).__name__}: {str(error)[:200]}")
            return
        run.record.compiled_reference_ms = timing.summary(times)


def _steps(operators: dict[str, OpUse] | None, launches: dict[str, int] | None) -> int:
    """Number of operators and launches of one call."""
    return sum(use.count for use in (operators or {}).values()) + sum((launches or {}).values())


def _take_clocks(measurement: Measurement) -> None:
    """What several clocks say of the same calls, as evidence for the checks."""
    run, series = measurement.run, measurement.clocked
    if series is None or not series.event_ms:
        return
    run.evidence.clocks = Clocks(
        event_ms=statistics.fmean(series.event_ms),
        synced_ms=series.host_ms,
        launch_overhead_ms=statistics.median(measurement.empty_ms) / len(series.event_ms),
        drain_ms=statistics.fmean(series.drain_ms),
        in_process_ms=statistics.fmean(series.in_process_ms),
        per_call_ms=series.in_process_ms,
        floor_ms=floor_ms(measurement.output_bytes, measurement.device) if measurement.output_bytes else None,
    )
    run.evidence.timed_outputs_checked = measurement.checked
    run.evidence.timed_outputs_wrong = measurement.wrong


def floor_ms(output_bytes: int, device: torch.device) -> float | None:
    """Time to write the bytes that exceed the L2 cache at peak memory rate; None where PyTorch does not know the rate."""
    properties = torch.cuda.get_device_properties(device)
    bytes_per_s = card_of(properties).bytes_per_s
    return None if bytes_per_s is None else 1e3 * max(0, output_bytes - properties.L2_cache_size) / bytes_per_s
