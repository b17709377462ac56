"""Constants of a model that get another value, wherever it keeps them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn as nn

from dice.kernels.candidate.moved_constants import Move, Places, move_all, moving

_ONES = Move(1.0, 1.5, (0.0, 1.0), mixed=False)
_ONES_ANYWHERE = Move(1.0, 1.5, (0.0, 1.0), mixed=True)


@pytest.mark.parametrize(
    ("values", "anywhere", "expected"),
    [
        ([1.0, 1.0], False, [1.5, 1.5]),
        ([1.0, 0.0], False, [1.5, 0.0]),  # two constants in one
        ([1.0, 0.375], False, [1.0, 0.375]),
        ([1.0, 0.375], True, [1.5, 0.375]),
        ([1.0000001], False, [1.5]),
        ([0.0, 0.0], False, [0.0, 0.0]),
    ],
)
def test_a_value_is_moved_by_what_it_is(values: list[float], anywhere: bool, expected: list[float]) -> None:
    tensor = torch.tensor(values)
    (_ONES_ANYWHERE if anywhere else _ONES).of(tensor)
    assert tensor.tolist() == expected


def test_other_kinds_of_tensors_stay() -> None:
    for tensor in (torch.ones(3, dtype=torch.int64), torch.ones(3, dtype=torch.bool), torch.empty(0)):
        before = tensor.clone()
        _ONES.of(tensor)
        assert torch.equal(tensor, before)


def test_what_is_computed_when_a_model_is_made_follows() -> None:
    def folded() -> torch.Tensor:
        norm, slope = nn.BatchNorm1d(4), nn.Linear(4, 4)
        nn.init.ones_(slope.bias)
        assert norm.running_var is not None
        return (norm.weight * torch.rsqrt(norm.running_var) * slope.bias).detach()

    with moving(_ONES):
        inside = folded()
    torch.testing.assert_close(inside, torch.full((4,), 1.5**1.5))
    torch.testing.assert_close(folded(), torch.ones(4))


def test_making_draws_nothing_and_keeps_what_is_drawn() -> None:
    torch.manual_seed(3)
    plain = nn.Linear(5, 7).weight
    torch.manual_seed(3)
    with moving(_ONES_ANYWHERE):
        nn.LayerNorm(7)
        assert torch.equal(nn.Linear(5, 7).weight, plain)


def test_a_tensor_that_others_read_is_left_alone() -> None:
    table = torch.ones(2, 3)
    with moving(_ONES):
        nn.Module().register_buffer("row", table[0])
    assert torch.equal(table, torch.ones(2, 3))


def test_everything_that_a_model_leads_to_counts_once() -> None:
    class Held(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gain = nn.Parameter(torch.ones(3))
            self.same = self.gain
            self.plain = {"scale": [torch.ones(2)]}
            self.log = nn.Parameter(torch.full((4,), -0.7))
            self.linear = nn.Linear(2, 2)
            self.register_buffer("count", torch.ones(5, dtype=torch.int64))

    model: Any = Held()
    with torch.no_grad():
        assert move_all(model, _ONES) == Places(moved=5, others=4)
    assert model.plain["scale"][0].tolist() == [1.5, 1.5] == model.gain[:2].tolist()
