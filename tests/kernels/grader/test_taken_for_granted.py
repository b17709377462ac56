"""Who is blamed for a wrong output where an input has other values than every draw gives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from execution import job, program

from dice.kernels.grader.executor import Executor
from dice.kernels.grader.taken_for_granted import taken_for_granted
from dice.kernels.records.evidence import ExperimentOutcome
from dice.kernels.sandbox.replies import CandidateError, Facts
from dice.kernels.sandbox.session import CandidateRaised

ZEROS = torch.zeros(30, 4)


def one_of(outcomes: list[ExperimentOutcome | None]) -> Callable[[Any], ExperimentOutcome | None]:
    """What is called for each kind: these outcomes one after the other."""
    kinds: list[Any] = []

    def called(kind: Any) -> ExperimentOutcome | None:
        if kind not in kinds:
            kinds.append(kind)
        return outcomes[len(kinds) - 1]

    return called


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (["wrong", "wrong", "wrong"], "wrong"),
        (["wrong", "stale", None], "wrong"),
        (["wrong", None, None], "wrong"),
        (["wrong", "right", "wrong"], "right"),
        (["wrong", "wrong", "idle"], "right"),
        ([None, None, None], None),
    ],
)
def test_one_that_is_right_for_no_kind_is_blamed(
    outcomes: list[ExperimentOutcome | None], expected: ExperimentOutcome | None
) -> None:
    assert taken_for_granted(ZEROS, one_of(outcomes)) == expected


def test_one_right_draw_is_not_enough() -> None:
    drawn = iter(["right", "wrong"] * 9)
    assert taken_for_granted(ZEROS, lambda _: next(drawn)) == "wrong"  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("outcome", "draws"), [("right", 2), ("idle", 2), ("wrong", 1), ("stale", 1), (None, 6)])
def test_a_kind_is_drawn_until_it_is_known(outcome: ExperimentOutcome | None, draws: int) -> None:
    drawn: list[Any] = []

    def called(kind: Any) -> ExperimentOutcome | None:
        drawn.append(kind)
        return outcome

    taken_for_granted(ZEROS, called)
    assert [drawn.count(kind) for kind in dict.fromkeys(drawn)] == [draws] * 3


def test_one_that_refuses_other_values_is_not_blamed() -> None:
    def refuses(_: Any) -> ExperimentOutcome | None:
        error = CandidateError(type="ValueError", text="", place="", exit=False, out_of_memory=None)
        raise CandidateRaised("runtime_error", error, Facts())

    assert taken_for_granted(ZEROS, refuses) == "right"


def test_numbers_and_what_is_drawn_have_no_kinds() -> None:
    assert taken_for_granted(3, one_of(["wrong"])) is None
    assert taken_for_granted(torch.randn(5), one_of(["wrong"])) is None


STATE = "lambda: [torch.randn(16, 24), torch.zeros(16, 24)]"
MIX = "self.u = nn.Parameter(torch.randn(24, 24))"
PLACES = "lambda: [torch.randn(16, 24), torch.arange(16)]"
TABLE = "self.t = nn.Parameter(torch.randn(40, 24))"


@pytest.mark.parametrize(
    ("init", "arguments", "inputs", "forward", "other"),
    [
        (MIX, "x, h", STATE, "x.tanh() + h + h @ self.u", "x.tanh() + h"),
        (TABLE, "x, p", PLACES, "x * self.t[p]", "x * self.t[p[0] + torch.arange(16)]"),
    ],
    ids=["state", "positions"],
)
def test_a_part_that_is_left_out_shows(
    plain_executor: Executor, init: str, arguments: str, inputs: str, forward: str, other: str
) -> None:
    problem = program("Model", init, forward, arguments, inputs)
    assert blamed(plain_executor, program("ModelNew", init, other, arguments, inputs), problem)
    assert not blamed(plain_executor, program("ModelNew", init, forward, arguments, inputs), problem)


def test_places_that_never_occur_twice_may_be_relied_on(plain_executor: Executor) -> None:
    problem = program("Model", "", "torch.zeros_like(x).index_add(0, p, x)", "x, p", PLACES)
    other = program("ModelNew", "", "torch.zeros_like(x).index_copy(0, p, x)", "x, p", PLACES)
    assert not blamed(plain_executor, other, problem)


def blamed(executor: Executor, candidate: str, problem: str) -> bool:
    _, strict = executor.verify(job(candidate, problem))
    assert strict.functional_status == "correct", strict.message
    return "assumed_constant" in {each.name for each in strict.deception}
