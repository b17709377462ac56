"""Timed calls and repeated ones, with a timer that needs no GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from dice.kernels.candidate.bare_calls import BareCalls
from dice.kernels.candidate.call_timer import CallTimes

TIMES = CallTimes(event_ms=1.0, in_process_ms=2.0, drain_ms=3.0, launch_ms=4.0, queued=True)


class Timer:
    """Notes what is asked of it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def prepare(self, flush_bytes: int) -> None:
        self.asked.append(("prepare", flush_bytes))

    def time(self, call: Callable[[], Any], fills: int = 0) -> tuple[Any, CallTimes]:
        self.asked.append(("time", fills))
        return call(), TIMES


class Model:
    """Adds one to its input, in place, and keeps what it was called with."""

    def __init__(self) -> None:
        self.calls: list[float] = []

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.append(float(x))
        assert not torch.is_grad_enabled()
        return x.add_(1.0)


@pytest.fixture
def program() -> Any:
    phases: list[str] = []

    @contextlib.contextmanager
    def phase(name: str) -> Any:
        phases.append(name)
        yield

    return SimpleNamespace(
        accelerator=SimpleNamespace(timer=Timer(), settle=lambda: None, device=torch.device("cpu")),
        trail=SimpleNamespace(phase=phase),
        phases=phases,
        model=Model(),
        inputs={0: [torch.tensor(10.0)], 1: [torch.tensor(20.0)]},
        outputs=None,
    )


def test_a_timed_call_comes_after_one_on_another_set(program: Any) -> None:
    reply = BareCalls(program).do_go(slot=0, before=1, seed=5, flush_bytes=64, fills=3)
    assert program.model.calls == [20.0, 10.0]
    assert program.accelerator.timer.asked == [("prepare", 64), ("time", 3)]
    assert (float(program.outputs), program.phases) == (11.0, ["timing"])
    assert reply == {"times": vars(TIMES)}


def test_a_series_keeps_the_last_outputs(program: Any) -> None:
    reply = BareCalls(program).do_series(slot=0, calls=3, seed=5)
    assert program.model.calls == [10.0, 11.0, 12.0]
    assert (float(program.outputs), len(reply["times"])) == (13.0, 3)
    assert BareCalls(program).do_series(slot=0, calls=0, seed=5) == {"times": []}


def test_the_call_whose_output_counts_draws_from_the_seed(program: Any) -> None:
    """Not what the call before it left of the generator: the reference is seeded alike."""
    program.model = torch.rand_like
    torch.manual_seed(5)
    expected = float(torch.rand(()))
    BareCalls(program).do_go(slot=0, before=1, seed=5, flush_bytes=0, fills=0)
    assert float(program.outputs) == expected
    BareCalls(program).do_series(slot=0, calls=3, seed=5)
    assert float(program.outputs) == expected


@pytest.mark.parametrize(("anew", "expected"), [(True, [10.0, 10.0, 10.0]), (False, [10.0, 11.0, 12.0])])
def test_repeated_calls_may_each_get_the_first_ones_values(program: Any, anew: bool, expected: list[float]) -> None:
    assert BareCalls(program).do_repeat(slot=0, calls=3, budget_s=60.0, anew=anew) == {"calls": 3}
    assert program.model.calls == expected
    assert BareCalls(program).do_repeat(slot=0, calls=3, budget_s=0.0, anew=anew) == {"calls": 0}
