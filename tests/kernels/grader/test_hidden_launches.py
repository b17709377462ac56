"""Timing behind fills, on a simulated host and GPU."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from dice.kernels.grader.hidden_launches import HOST_TRIES, MOST_FILLS, QueuedCalls, Sides, Times, settled
from dice.kernels.timing import STEP_MS, is_host_bound

FILL_MS = 0.06


@dataclass
class Program:
    """Takes `gpu_ms`, and the host `host_ms` to launch; `late`: share of calls in which the host loses 2 ms besides."""

    gpu_ms: float
    host_ms: float
    waits: bool = False
    """For the GPU, before it launches the second half of its work."""
    late: float = 0.0
    orders: int = 0
    generator: random.Random = field(default_factory=lambda: random.Random(0))

    def __call__(self, fills: int) -> Times:
        self.orders += 1
        host_ms = self.host_ms + (2.0 if self.generator.random() < self.late else 0.0)
        begins_ms = FILL_MS * fills
        if self.waits:
            first_ends = max(begins_ms, host_ms / 2) + self.gpu_ms / 2
            ordered_ms = first_ends + host_ms / 2
            ends_ms = ordered_ms + self.gpu_ms / 2
        else:
            ordered_ms = host_ms
            ends_ms = max(begins_ms + self.gpu_ms, host_ms)
        return Times(
            event_ms=ends_ms - begins_ms,
            in_process_ms=ends_ms,
            drain_ms=0.0,
            launch_ms=ordered_ms,
            queued=fills > 0 and ordered_ms < begins_ms,
        )


def timed(program: Program, calls: int = 40, possible: bool = True, brief: bool = True) -> QueuedCalls:
    queue = QueuedCalls(program, possible=possible, brief=brief)
    for _ in range(calls):
        queue.time(program)
    return queue


@pytest.mark.parametrize("host_ms", [0.01, 0.1, 1.0, 5.0])
def test_launches_are_hidden_however_long_they_take(host_ms: float) -> None:
    queue = timed(Program(gpu_ms=0.02, host_ms=host_ms))
    assert queue.without_launches
    assert [times.event_ms for times in queue.times] == pytest.approx([0.02] * 40)
    side = queue.side([(0.02, 0.02)] * 20, steps=3)
    assert side.host_ms == 0
    assert side.whole_ms == pytest.approx(max(0.02, host_ms))


def test_a_late_host_is_asked_again() -> None:
    program = Program(gpu_ms=0.02, host_ms=0.05, late=0.1)
    queue = timed(program)
    assert queue.without_launches
    assert [times.event_ms for times in queue.times] == pytest.approx([0.02] * 40)


def test_what_launches_for_too_long_or_waits_inside_has_its_launches_in_its_times() -> None:
    too_long = timed(Program(gpu_ms=0.02, host_ms=2 * FILL_MS * MOST_FILLS))
    waiting = timed(Program(gpu_ms=0.02, host_ms=0.05, waits=True))
    for queue in (too_long, waiting):
        assert not queue.without_launches
        assert queue.fills == 0
        assert queue.side([(1.0, 1.0)] * 20, steps=3).host_ms == pytest.approx(4 * STEP_MS)
    assert waiting.times[0].event_ms > 0.02


def test_what_must_not_be_hidden_is_not() -> None:
    queue = timed(program := Program(gpu_ms=0.02, host_ms=0.05), possible=False)
    assert not queue.without_launches
    assert program.orders == len(queue.times) == 40  # nothing was tried


def test_long_calls_are_not_tried_over_and_over() -> None:
    program = Program(gpu_ms=1000.0, host_ms=0.05, waits=True)
    QueuedCalls(program, possible=True, brief=False)
    assert program.orders == 1
    assert timed(Program(gpu_ms=1000.0, host_ms=0.05), brief=False).without_launches


def sides_of(mine: QueuedCalls, theirs: QueuedCalls) -> Sides:
    return tuple(queue.side([(0.01, 0.01)] * 10, 1) for queue in (mine, theirs))  # pyright: ignore[reportReturnType]


@pytest.mark.parametrize(("recovers", "bound", "asked"), [(True, False, 1), (False, True, HOST_TRIES)])
def test_a_slow_moment_of_the_candidates_core_does_not_bind_it(recovers: bool, bound: bool, asked: int) -> None:
    candidate, reference = Program(0.01, 0.12), Program(0.01, 0.03)
    mine, theirs = QueuedCalls(candidate, possible=True, brief=True), QueuedCalls(reference, possible=True, brief=True)
    for _ in range(80):
        mine.time(candidate)
        theirs.time(reference)
    times = 0

    def again() -> None:
        nonlocal times
        times += 1
        if recovers:
            candidate.host_ms = 0.03
        for _ in range(16):
            mine.time(candidate)
            theirs.time(reference)

    assert is_host_bound(*sides_of(mine, theirs))
    assert is_host_bound(*settled(lambda: sides_of(mine, theirs), again)) is bound
    assert times == asked
