"""What a forward makes of weights alone, and candidates that make it before."""

from __future__ import annotations

import pytest
import torch
from execution import job, program

from dice.kernels.grader.executor import Executor
from dice.kernels.grader.prepared import WeightsRecorder

WEIGHT, INPUT = torch.randn(8, 8), torch.randn(8, 8)


def recorded(compute: object) -> set[str]:
    with torch.no_grad(), WeightsRecorder([WEIGHT]) as recorder:
        compute()  # pyright: ignore[reportCallIssue]
    return {name.removeprefix("aten::") for name in recorder.ops}


def written_into() -> None:
    room = WEIGHT.clone()
    room.add_(INPUT)
    room.sum()


def read_from_a_part() -> None:
    room = torch.zeros(2, 8)
    room[0] = INPUT[0]
    room[1].sum()


def put_into_new_memory() -> None:
    room = torch.zeros(8, 8)
    room.copy_(WEIGHT)
    room.sum()


def asked_by_keyword() -> None:
    assert WEIGHT.sum(0, dtype=torch.float64).dtype == torch.float64


@pytest.mark.parametrize(
    ("compute", "mixing"),
    [
        (lambda: (WEIGHT @ WEIGHT).tanh(), {"mm"}),
        (lambda: INPUT @ WEIGHT, set()),
        (lambda: WEIGHT.t().sum(0) * INPUT, {"sum"}),
        (lambda: (INPUT * WEIGHT.sum(0)).cumsum(0), {"sum"}),
        (lambda: INPUT.sum(), set()),
        (written_into, set()),
        (read_from_a_part, set()),
        (put_into_new_memory, {"sum"}),
        (asked_by_keyword, {"sum"}),
    ],
)
def test_operators_that_follow_no_input(compute: object, mixing: set[str]) -> None:
    assert recorded(compute) & {"mm", "sum", "cumsum"} == mixing


def test_what_is_made_of_nothing_is_no_work_on_weights() -> None:
    assert "randperm" not in recorded(lambda: torch.randperm(9))
    assert "sum" in recorded(lambda: torch.ones(9).sum())


def test_sparse_inputs_are_no_weights() -> None:
    given, weight = INPUT.to_sparse(), WEIGHT.to_sparse()
    with torch.no_grad(), WeightsRecorder([WEIGHT, weight]) as recorder:
        torch.sparse.mm(given, WEIGHT)
    assert recorder.ops == {}


PAIR = "self.a = nn.Parameter(torch.randn(16, 20)); self.b = nn.Parameter(torch.randn(20, 24))"
READ = "x + self.a @ self.b"
KEPT = "x + self.kept[0]"


@pytest.mark.parametrize(
    ("more", "forward", "blamed"),
    [
        ("", READ, False),
        ("; self.kept = [(self.a @ self.b).detach()]", KEPT, True),
        ("; self.kept = []", "x + (self.kept or self.kept.append((self.a @ self.b).detach()) or self.kept)[0]", True),
        ("; self.kept = [self.a.detach().t().contiguous()]", "x + self.kept[0].t() @ self.b", False),
    ],
    ids=["in forward", "when it is made", "in the first forward", "transposed when it is made"],
)
def test_a_product_of_weights(plain_executor: Executor, more: str, forward: str, blamed: bool) -> None:
    _, strict = plain_executor.verify(job(program("ModelNew", PAIR + more, forward), program("Model", PAIR, READ)))
    assert strict.functional_status == "correct", strict.message
    before = [each for each in strict.deception if "before the calls that are timed" in each.evidence]
    assert bool(before) is blamed
