"""Memory that follows a call's inputs is told from memory that does not, and overwritten."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from dice.kernels.candidate.advancing import Look, look_at
from dice.kernels.candidate.kept_values import followers, overwrite


def _looks(tensor: torch.Tensor, *changes: Callable[[torch.Tensor], object]) -> list[Look]:
    """Looks at a tensor that a module has, each after a change."""
    module = torch.nn.Module()
    module.kept = tensor
    looks = []
    for change in changes:
        change(tensor)
        looks.append(look_at([module], set(), set(), []))
    return looks


def _same(tensor: torch.Tensor) -> None:
    del tensor


FLOATS, MORE = torch.linspace(1, 2, 40), torch.linspace(3, 4, 40)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int16, torch.int32, torch.int64])
def test_what_follows_the_inputs_is_overwritten(dtype: torch.dtype) -> None:
    tensor = torch.zeros(40, dtype=dtype)
    looks = _looks(tensor, lambda t: t.copy_(FLOATS * 9), lambda t: t[:30].copy_(MORE[:30] * 99), _same)
    (region, places), *thirds = followers(looks[0], looks[1], looks[2], set())
    assert places.tolist() == [True] * 30 + [False] * 10
    assert all(one is region for one, _ in thirds)
    assert [part.nonzero().flatten().tolist() for _, part in thirds] == [[*range(n, n + 10)] for n in (0, 10, 20)]
    assert overwrite(region, places) == 30
    spoilt = tensor[:30].isnan() if dtype.is_floating_point else tensor[:30] == 0
    assert bool(spoilt.all())
    assert torch.equal(tensor[30:], (FLOATS * 9).to(dtype)[30:])


@pytest.mark.parametrize(
    ("changes", "spared"),
    [
        ((lambda t: t.copy_(FLOATS), _same, _same), False),  # a table
        ((lambda t: t.copy_(FLOATS), lambda t: t.add_(1), lambda t: t.add_(1)), False),  # what counts
        ((lambda t: t.copy_(FLOATS), lambda t: t[:15].copy_(MORE[:15]), _same), False),  # a few sizes
        ((lambda t: t.copy_(FLOATS), lambda t: t.copy_(MORE), _same), True),  # an input
    ],
    ids=["a table", "a counter", "a few", "spared"],
)
def test_what_does_not_follow_is_left(changes: tuple[Callable[[torch.Tensor], object], ...], spared: bool) -> None:
    tensor = torch.zeros(40)
    looks = _looks(tensor, *changes)
    left = {tensor.untyped_storage().data_ptr()} if spared else set()
    assert followers(looks[0], looks[1], looks[2], left) == []


def test_the_largest_piece_comes_first() -> None:
    module = torch.nn.Module()
    module.small, module.large = torch.zeros(20), torch.zeros(30)
    looks = []
    for value in (1.5, 2.5, 2.5):
        module.small.fill_(value)
        module.large.fill_(value)
        looks.append(look_at([module], set(), set(), []))
    assert [int(places.sum()) for _, places in followers(looks[0], looks[1], looks[2], set())] == [
        *(30, 20),
        *(10, 10, 10),
        *(7, 7, 6),
    ]


def test_addresses_in_memory_of_an_unknown_type_stay_and_integers_become_zero() -> None:
    words = torch.zeros(64, dtype=torch.int32)
    segment = [(words.data_ptr(), words.nbytes)]
    looks = []
    for value in (1, 2, 2):
        words[:20] = value
        words[20:40] = torch.full((20,), 0.5 + value).view(torch.int32)
        words[40:].view(torch.int64)[:] = (0x7F << 40) + 4096 * value
        looks.append(look_at([], set(), set(), segment))
    (region, places), *_ = followers(looks[0], looks[1], looks[2], set())
    assert places.tolist() == [True] * 40 + [False] * 24
    assert overwrite(region, places) == 40
    assert not bool(words[:20].any())
    assert bool(words[20:40].view(torch.float32).isnan().all())
    assert bool((words[40:].view(torch.int64) == (0x7F << 40) + 8192).all())


def test_what_has_changed_since_is_left() -> None:
    tensor = torch.zeros(40)
    looks = _looks(tensor, lambda t: t.copy_(FLOATS), lambda t: t.copy_(MORE), _same)
    (region, places), *_ = followers(looks[0], looks[1], looks[2], set())
    tensor[:10] = 7
    assert overwrite(region, places) == 30
    assert bool((tensor[:10] == 7).all())
