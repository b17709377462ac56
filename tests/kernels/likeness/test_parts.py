"""What the search is made of: places that say something, ways to read a piece, values without their order."""

from __future__ import annotations

import pytest
import torch

from dice.kernels.likeness.distribution import Distribution, may_be_rearranged
from dice.kernels.likeness.layouts import orders, read, readings
from dice.kernels.likeness.places import FEW, PLACES, Places


def noise(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_places_say_something() -> None:
    answer = torch.tensor([0.0, 2.0, 2.0, 2.0, float("nan"), float("inf"), 5.0, -1.0])
    places = Places.of(answer)
    assert places is not None
    assert places.index.tolist() == [6, 7]
    assert places.values.tolist() == [5.0, -1.0]
    assert Places.of(torch.zeros(9)) is None
    assert Places.of(torch.zeros(0)) is None
    assert Places.of(noise(4).to(torch.complex64)) is None


def test_places_of_a_large_answer_are_few_and_the_same_each_time() -> None:
    answer = noise(300, 400)
    first, second = Places.of(answer), Places.of(answer)
    assert first is not None
    assert second is not None
    assert len(first.index) == PLACES
    assert torch.equal(first.index, second.index)
    assert torch.equal(first.values, answer.reshape(-1)[first.index].double())


def test_orders_of_three_dimensions_are_all_permutations() -> None:
    answer = noise(3, 5, 7)
    places = Places.of(answer)
    assert places is not None
    found = set()
    for index in orders(places):
        for dims in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
            memory = answer.permute(dims).contiguous().reshape(-1)
            if torch.equal(read(memory, index), places.values):
                found.add(dims)
    assert len(found) == 6


def test_a_piece_is_read_as_the_dtypes_that_may_hold_the_answer() -> None:
    piece = noise(64).view(torch.uint8)
    kinds = {reading.memory.dtype for reading in readings(piece, noise(64))}
    assert {torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32} <= kinds
    whole = {reading.memory.dtype for reading in readings(piece, torch.arange(64))}
    assert whole == {torch.int64, torch.int32, torch.float32}


def test_what_lies_outside_of_memory_is_no_number() -> None:
    values = read(torch.arange(4.0), torch.tensor([-1, 0, 3, 4]))
    assert values.isnan().tolist() == [True, False, False, True]


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (-3.0, 2.0), (0.01, -5.0)])
def test_values_are_alike_whatever_their_order_scale_and_shift(scale: float, shift: float) -> None:
    x = noise(40, 50).exp()
    mixed = x.reshape(-1)[torch.randperm(2000, generator=torch.Generator().manual_seed(2))]
    assert Distribution(x).is_like(Distribution(scale * mixed + shift))
    assert not Distribution(x).is_like(Distribution(noise(40, 50, seed=3).exp()))
    assert not Distribution(x).is_like(Distribution(x[:20]))


def test_only_pieces_of_about_its_size_may_hold_an_answer_in_another_order() -> None:
    answer = noise(FEW * FEW)
    assert may_be_rearranged(answer, noise(FEW * FEW))
    assert not may_be_rearranged(answer, noise(FEW * FEW - 1))
    assert not may_be_rearranged(answer, noise(8 * FEW * FEW))
    assert not may_be_rearranged(noise(FEW), noise(FEW))
