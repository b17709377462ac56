"""Which operators of PyTorch's join two elements of an input that kernels have led apart."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from dice.kernels.candidate import joins as module
from dice.kernels.candidate.joins import JoinRecorder, joins

INPUT = torch.arange(1.0, 65.0).view(4, 16)


def recorded(forward: Callable[[torch.Tensor], object]) -> list[JoinRecorder]:
    """Four forwards: of the same input twice, and with one of two elements of its second row changed."""
    recorders = []
    for change in ((), (), ((1, 3, 100.0),), ((1, 11, 200.0),)):
        given = INPUT.clone()
        for row, column, value in change:
            given[row, column] = value
        with JoinRecorder() as recorder:
            forward(given)
        recorders.append(recorder)
    return recorders


def mixed(x: torch.Tensor) -> torch.Tensor:
    return x.sum(1)


@pytest.mark.parametrize(
    "forward",
    [
        lambda x: x[:, :8].sum(1) + x[:, 8:].sum(1),
        lambda x: x[:, :8].sum(1).add_(x[:, 8:].sum(1)),
        lambda x: torch.logaddexp(x[:, 3], x[:, 11]),
        lambda x: torch.zeros(4).index_add_(0, torch.arange(4).repeat(2), torch.cat([x[:, 3], x[:, 11]])),
        lambda x: torch.lerp(x.double()[:, :8], x.double()[:, 3:11], 0.5) + torch.maximum(x[:, 3], x[:, 11]).sum(),
    ],
)
def test_parts_that_are_joined(forward: Callable[[torch.Tensor], object]) -> None:
    assert joins(recorded(forward))


@pytest.mark.parametrize(
    "forward",
    [
        lambda x: x + torch.zeros_like(x),
        lambda x: mixed(x) + torch.zeros(4),  # somebody mixed them before
        lambda x: mixed(x) + 1e-30 * mixed(x),
        lambda x: torch.maximum(mixed(x), mixed(x)),
        lambda x: x - mixed(x)[:, None],
        lambda x: torch.zeros(4).index_add_(0, torch.arange(4), mixed(x)),
        lambda x: x[:, :6] + x[:, 6:12],  # other elements meet
        lambda x: x @ x.t(),  # no operator that is asked about
        lambda x: None,
    ],
)
def test_what_joins_nothing(forward: Callable[[torch.Tensor], object]) -> None:
    assert not joins(recorded(lambda x: forward(x.roll(1, 1)[:, :14])))


def test_where_not_all_is_seen_something_may_be_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    other = iter([1, 1, 2, 1])
    assert joins(recorded(lambda x: [x + 1 for _ in range(next(other))]))
    monkeypatch.setattr(module, "_MOST_BYTES", 100)
    assert joins(recorded(lambda x: x + 1))
