"""Steps between what an operator takes and what it gives: pure logic, on a chain of four steps. Both forwards:
tests/kernels/grader/test_shared_values.py."""

from __future__ import annotations

import pytest
import torch

from dice.kernels.checks.shared_values import Call, Candidate, Reference, Step, steps_done
from dice.kernels.likeness.prints import print_of

GENERATOR = torch.Generator().manual_seed(3)
VALUES = [torch.randn(12, 10, generator=GENERATOR) for _ in range(7)]
"""An input; what the steps 0 to 3 give, of which the last takes the first two; what only the candidate knows, twice."""
REFERENCE = Reference(
    [
        Step(frozenset(), (1,), 1),
        Step(frozenset({0}), (2,), 2),
        Step(frozenset({1}), (3,), 3),
        Step(frozenset({2, 0}), (4,), 4),
    ],
    torch.stack([print_of(value) for value in VALUES[:5]]),
    given=1,
)
GAINS = torch.arange(1.0, 13.0)[:, None]


def done(*calls: Call, gained: int | None = None, changed: int = 1) -> dict[int, bool]:
    """Steps done by calls on `VALUES`; `gained`: the value on which a kernel has put gains."""
    values = [value * GAINS if row == gained else value for row, value in enumerate(VALUES)]
    return steps_done(REFERENCE, Candidate(calls, torch.stack([print_of(value) for value in values]), 1, [changed] * 7))


@pytest.mark.parametrize(
    ("calls", "places"),
    [
        ([Call((0,), (4,))], {0, 1, 2, 3}),
        ([Call((0,), (3,))], {0, 1, 2}),
        ([Call((2,), (4,))], {0, 2, 3}),
        ([Call((1,), (3,)), Call((3,), (6,))], {1, 2}),
        ([Call((0,), (5,)), Call((5,), (4,))], {0, 1, 2, 3}),
        ([Call((0,), (5,), is_pytorchs=False), Call((5,), (4,))], set()),
        ([Call((0, 5), (4,))], set()),
        ([Call((0, -1), (4,))], set()),
        ([Call((0,), (-1, 0))], set()),
        ([Call((), (4,))], {0, 1, 2, 3}),
        ([Call((5,), (6,), reads=True), Call((0,), (4,), takes_number=True)], set()),
        ([Call((2,), (6,), reads=True), Call((1,), (3,), takes_number=True)], {2}),
        ([Call((5,), (6,), reads=True), Call((0,), (4,))], {0, 1, 2, 3}),
    ],
)
def test_steps_between_values(calls: list[Call], places: set[int]) -> None:
    assert set(done(*calls)) == places


def test_a_result_up_to_gains_needs_gains_before_it() -> None:
    assert done(Call((0,), (4,)), gained=4) == {}
    values = [VALUES[0], VALUES[0] * GAINS, VALUES[4] * GAINS]
    prints = torch.stack([print_of(value) for value in values])

    def after_gains(changed: int) -> dict[int, bool]:
        return steps_done(REFERENCE, Candidate([Call((1,), (2,))], prints, 1, [changed] * 3))

    assert after_gains(1) == {0: True, 1: True, 2: True, 3: False}
    assert after_gains(10) == after_gains(-1) == {}  # a factor of a row that follows the row


def test_a_view_is_a_part_of_what_was_written() -> None:
    steps = [Step(frozenset(), (1,), 1), Step(frozenset({0}), (2,), 2, is_view=True), Step(frozenset({0}), (3,), 3)]
    reference = Reference(steps, REFERENCE.prints, 1)
    prints = torch.stack([print_of(value) for value in VALUES])
    assert steps_done(reference, Candidate([Call((0,), (2,))], prints, 1, [1] * 7)) == {}
    assert steps_done(reference, Candidate([Call((2,), (3,))], prints, 1, [1] * 7)) == {2: True}


def test_a_small_result_is_not_the_step() -> None:
    steps = [Step(frozenset(), (1, 2), whole=2)]
    prints = torch.stack([print_of(value) for value in VALUES])
    for row, places in ((1, {}), (2, {0: True})):
        found = steps_done(Reference(steps, REFERENCE.prints, 1), Candidate([Call((0,), (row,))], prints, 1, [1] * 7))
        assert found == places
