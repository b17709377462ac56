"""References that tell which of equal values came first."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from dice.kernels.grader.equal_values import LastOfEqual, choice_is_told

EQUAL = torch.tensor([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0]])
DIFFERENT = torch.tensor([[1.0, 3.0, 2.0, 0.0], [2.0, 9.0, 4.0, 7.0]])


def test_the_last_of_equal_values() -> None:
    with LastOfEqual():
        values, places = EQUAL.max(1)
        least = EQUAL.min(0, keepdim=True)
    assert values.tolist() == [3.0, 2.0]
    assert places.tolist() == [2, 3]
    assert least.values.tolist() == [[1.0, 2.0, 2.0, 0.0]]
    assert EQUAL.max(1).indices.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        (lambda x: x.max(1).indices, True),
        (lambda x: x.t()[x.min(dim=1)[1]] * x.max(-1, keepdim=True)[1].float(), True),
        (lambda x: torch.softmax(x - x.max(1, keepdim=True)[0], 1), False),
        (lambda x: x.amax(1) - x.min(), False),
    ],
)
def test_what_tells_the_choice(reference: Callable[[torch.Tensor], torch.Tensor], told: bool) -> None:
    assert choice_is_told(lambda: reference(EQUAL)) is told
    assert choice_is_told(lambda: reference(DIFFERENT)) is False
