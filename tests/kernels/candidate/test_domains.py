"""Kinds of values that an input may stand for which every draw makes the same."""

from __future__ import annotations

import pytest
import torch

from dice.kernels.candidate.domains import counting_axis, kinds_of_values


@pytest.mark.parametrize(
    ("value", "axis"),
    [
        (torch.arange(9), 0),
        (torch.arange(3, 12), 0),
        (torch.arange(9).repeat(4, 1), 1),
        (torch.arange(9)[:, None].repeat(1, 4), 0),
        (torch.arange(12).view(3, 4), 1),
        (torch.arange(9, dtype=torch.uint8), 0),
        (torch.arange(3), 0),
        (torch.arange(4)[:, None] + torch.arange(4), 1),
        (torch.arange(0, 18, 2), None),  # offsets
        (torch.arange(9).flip(0), None),
        (torch.arange(9.0), None),
        (torch.arange(9).to(torch.complex64), None),
        (torch.tensor([0, 1]), None),
        (torch.tensor(3), None),
        (torch.empty(0, 3, dtype=torch.long), None),
        (torch.tensor([False, True, True]), None),
    ],
)
def test_along_which_axis_integers_count_up(value: torch.Tensor, axis: int | None) -> None:
    assert counting_axis(value) == axis


@pytest.mark.parametrize("value", [torch.arange(3), torch.arange(16), torch.arange(5, 25).repeat(3, 1)])
def test_positions_get_another_order_or_repeat_themselves(value: torch.Tensor) -> None:
    reordered, repeated = kinds_of_values(value)
    for seed in range(30):
        other = reordered(value, seed)
        assert not torch.equal(other, value)
        assert torch.equal(other.sort(dim=-1).values, value)
        again = repeated(value, seed)
        assert bool((again.diff(dim=-1) >= 0).all())
        assert bool((again[..., 0] == value[..., 0]).all())
        assert bool((again[..., 1] == again[..., 0]).all())
        assert bool(torch.isin(again, value).all())


def test_positions_down_the_rows_change_by_rows() -> None:
    value = torch.arange(9)[:, None].repeat(1, 4)
    for kind in kinds_of_values(value):
        other = kind(value, 3)
        assert not torch.equal(other, value)
        assert torch.equal(other, other[:, :1].repeat(1, 4))


def test_zeros_become_numbers_of_either_sign_or_masks() -> None:
    normal, added, mask = (kind(torch.zeros(40, 8), 5) for kind in kinds_of_values(torch.zeros(40, 8)))
    assert bool((normal < -1).any())
    assert bool((normal > 1).any())
    assert added.unique().numel() == 2
    assert float(added.max()) == 0
    assert float(added.min()) < -1000
    assert mask.unique().tolist() == [0, 1]
    assert 0.65 < float((added == 0).float().mean()) < 0.85, "mostly open"
    assert 0.65 < float(mask.mean()) < 0.85


def test_ones_become_factors_or_masks() -> None:
    factors, mask, lengths = (kind(torch.ones(40, 8), 5) for kind in kinds_of_values(torch.ones(40, 8)))
    assert bool(((factors > 0) & (factors != 1)).all())
    assert mask.unique().tolist() == [0, 1]
    assert bool((lengths[:, 0] == 1).all())
    assert bool((lengths.diff(dim=1) <= 0).all())
    assert set(lengths.sum(dim=1).tolist()) == {*range(1, 9)}


def test_another_number_stays_of_its_sign() -> None:
    (other,) = kinds_of_values(torch.full((9,), -0.3))
    assert bool((other(torch.full((9,), -0.3), 1) < 0).all())


@pytest.mark.parametrize(
    "value", [torch.randn(4), torch.ones(3, dtype=torch.long), torch.ones(3, dtype=torch.bool), torch.empty(0)]
)
def test_what_is_drawn_and_what_is_no_number_has_none(value: torch.Tensor) -> None:
    assert kinds_of_values(value) == ()


@pytest.mark.parametrize("value", [torch.tensor(1.0), torch.tensor(0.0), torch.ones(1)])
def test_a_single_number_keeps_its_shape(value: torch.Tensor) -> None:
    assert {kind(value, 3).shape for kind in kinds_of_values(value)} == {value.shape}


@pytest.mark.parametrize(
    "value",
    [torch.zeros(9, dtype=torch.float16), torch.ones(9, dtype=torch.float64), torch.arange(9, dtype=torch.int16)],
)
def test_the_type_stays(value: torch.Tensor) -> None:
    assert {kind(value, 3).dtype for kind in kinds_of_values(value)} == {value.dtype}


@pytest.mark.parametrize("value", [torch.zeros(40, 8), torch.ones(40, 8), torch.full((9,), 3.0), torch.arange(16)])
def test_values_follow_their_seed(value: torch.Tensor) -> None:
    for kind in kinds_of_values(value):
        assert torch.equal(kind(value, 3), kind(value, 3))
        assert not torch.equal(kind(value, 3), kind(value, 4))
