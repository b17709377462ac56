"""Which tensors hold the same values, in any order, and which do up to a gain and a shift for each slice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from dice.kernels.likeness.prints import WIDTH, Prints, equal_prints, like_prints, print_of

Change = Callable[[torch.Tensor], torch.Tensor]
VALUES = torch.randn(6, 40, 24, generator=torch.Generator().manual_seed(7))
ROWS = torch.linspace(0.5, -2.0, 40)[:, None]


def compared(change: Change, values: torch.Tensor = VALUES) -> tuple[bool, bool]:
    """Whether the changed values have equal prints, and like ones."""
    before, after = print_of(values)[None], print_of(change(values.clone()))
    return bool(equal_prints(before, after)), bool(like_prints(before, after))


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x,
        lambda x: x.transpose(0, 2).contiguous(),
        lambda x: x.flip(1).flatten(),
        lambda x: x.double(),
        lambda x: x * (1 + 1e-6),
    ],
)
def test_the_same_values_in_another_order(change: Change) -> None:
    assert compared(change) == (True, True)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: 3 * x,
        lambda x: x - 5,
        lambda x: x * ROWS,
        lambda x: (x * ROWS + ROWS.abs()).transpose(1, 2).contiguous(),
        lambda x: x.flatten(0, 1) * torch.linspace(1, 2, 240)[:, None],
        lambda x: x + torch.arange(24.0),
        lambda x: -x * torch.arange(1.0, 7.0)[:, None, None],
    ],
)
def test_gains_and_shifts_of_slices(change: Change) -> None:
    assert compared(change) == (False, True)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: torch.randn(6, 40, 24),
        lambda x: x.relu(),
        lambda x: x.exp(),
        lambda x: x + 0.05 * torch.randn(6, 40, 24),
        lambda x: x * ROWS * torch.linspace(1, 3, 24),
        lambda x: x[:5],
        lambda x: torch.cat([x, x]),
    ],
)
def test_other_values(change: Change) -> None:
    assert compared(change) == (False, False)


def test_numbers_with_a_bound_tell_little() -> None:
    flags = (VALUES > 0).float()
    assert compared(lambda x: (torch.randn(6, 40, 24) > 0).float(), flags)[1] is False
    assert compared(lambda x: torch.rand(300, 300), torch.rand(300, 300)) == (False, False)


def test_few_numbers_and_other_types() -> None:
    assert compared(lambda x: x, torch.tensor(3.0)) == (True, False)
    assert compared(lambda x: x * 1.001, torch.tensor([3.0, 4.0])) == (False, False)
    assert compared(lambda x: x.float(), torch.arange(50)) == (True, False)
    assert compared(lambda x: x.conj(), torch.polar(torch.rand(40), torch.rand(40)))[0] is False
    assert compared(lambda x: x.nan_to_num(0.0, 0.0, 0.0), torch.tensor([1.0, torch.inf, 2.0, torch.nan]))[0] is True


def test_rows_of_prints() -> None:
    prints = Prints(2)
    given = [None, torch.empty(0), torch.eye(3).to_sparse(), VALUES, 3.0, VALUES[0], VALUES[1]]
    assert [prints.add(value) for value in given] == [-1, -1, -1, 0, -1, 1, -1]
    assert prints.stacked().shape == (2, WIDTH)
    assert Prints(2).stacked().shape == (0, WIDTH)


def test_no_more_elements_than_take_a_second() -> None:
    prints, large = Prints(9), torch.zeros(1).expand(3 << 20)
    assert [prints.add(value) for value in (large, large, VALUES)] == [0, -1, 1]
