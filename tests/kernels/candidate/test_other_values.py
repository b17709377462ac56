"""The other values that tensors get, and norms that do not begin as ones."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dice.kernels.candidate.other_values import (
    Other,
    balanced,
    bounded,
    coarse,
    emptied,
    filled,
    grown,
    mixed,
    odd_weights,
    partly,
    punched,
    refined,
    rescaled,
    resigned,
    shuffled,
    swapped,
    touched,
    varied,
)
from dice.kernels.grader.usage import is_constant


def test_other_values_are_of_the_same_kind() -> None:
    ones = varied(torch.ones(1000), 1)
    assert (ones >= 0.5).all()
    assert (ones <= 1.5).all()
    assert ones.std() > 0.2
    zeros = varied(torch.zeros(1000), 1)
    assert zeros.min() < -0.4 < 0.4 < zeros.max()
    assert varied(torch.full((1000,), -2.0), 1).max() < 0
    for kind in (torch.bool, torch.int32):
        mask = varied(torch.ones(1000, dtype=kind), 1)
        assert mask.dtype == kind
        assert set(mask.tolist()) == {0, 1}
    lengths = varied(torch.full((1000,), 9), 1)
    assert set(lengths.tolist()) == set(range(1, 10))
    assert torch.equal(varied(torch.ones(5), 3), varied(torch.ones(5), 3))
    assert not torch.equal(varied(torch.ones(5), 3), varied(torch.ones(5), 4))


def test_grown_values_are_of_size_one() -> None:
    tiny = grown(torch.full((1000,), -1e-6), 1)
    assert tiny.max() < -0.4
    assert tiny.min() > -1.6
    assert set(grown(torch.full((1000,), 3), 1).tolist()) == {1, 2, 3}


def test_rescaled_weights_have_another_norm_whatever_their_number() -> None:
    row = torch.full((4096,), 1 / 64)
    norms = [float(rescaled(row, seed).norm()) for seed in range(20)]
    assert all(abs(norm - 1) > 0.1 for norm in norms)
    assert min(norms) < 1 < max(norms)
    assert (rescaled(row, 1) > 0).all()


def test_resigned_weights_have_signs_of_their_own() -> None:
    other = resigned(torch.ones(1000), 1)
    assert 400 < int((other < 0).sum()) < 600
    assert torch.equal(other.abs(), rescaled(torch.ones(1000), 1))
    assert not torch.equal(other.sign(), resigned(torch.ones(1000), 2).sign())
    assert other.half().dtype == resigned(torch.ones(4).half(), 1).dtype == torch.float16


def test_a_constant_parameter_begins_with_other_values_in_the_block() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.number = nn.Parameter(torch.tensor(0.07))
            self.gate = nn.Parameter(torch.ones(6))
            self.slope = nn.PReLU()
            self.drawn = nn.Parameter(torch.randn(6))
            self.read = float(self.number.detach())

    torch.manual_seed(1)
    usual = Scaled()
    torch.manual_seed(1)
    with odd_weights():
        odd = Scaled()
    assert odd.read == float(odd.number.detach()) != usual.read
    assert not is_constant(odd.gate)
    assert float(odd.slope.weight.detach()) != float(usual.slope.weight.detach())
    assert torch.equal(odd.drawn.sign(), usual.drawn.sign())
    assert not torch.equal(odd.drawn, usual.drawn)
    assert float(Scaled().number.detach()) == usual.read


def test_buffers_of_the_state_begin_with_other_values_in_the_block() -> None:
    class Packed(nn.Module):
        zero: torch.Tensor
        order: torch.Tensor
        ticket: torch.Tensor
        calls: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("zero", torch.zeros(64, dtype=torch.int32))
            self.register_buffer("order", torch.arange(64))
            self.register_buffer("ticket", torch.zeros(64, dtype=torch.int32), persistent=False)
            self.register_buffer("calls", torch.tensor(0))
            self.register_buffer("none", None)

    with odd_weights():
        odd = Packed()
    assert set(odd.zero.tolist()) == {0, 1}
    assert torch.equal(odd.order, torch.arange(64))
    assert not odd.ticket.any()
    assert int(odd.calls) == 0
    assert not Packed().zero.any()


def test_norms_begin_with_other_weights_in_the_block_only() -> None:
    def models() -> list[nn.Module]:
        torch.manual_seed(0)
        norms = [nn.BatchNorm2d(8), nn.InstanceNorm1d(8, affine=True, track_running_stats=True), nn.LayerNorm(8)]
        return [*norms, nn.GroupNorm(2, 8), nn.RMSNorm(8), nn.Linear(8, 8)]

    usual = models()
    with odd_weights():
        odd = models()
    assert [m.state_dict().keys() for m in odd] == [m.state_dict().keys() for m in usual]
    for norm in odd[:-1]:
        for name, value in norm.state_dict().items():
            assert not value.is_floating_point() or not is_constant(value), name
    assert torch.equal(odd[-1].weight, usual[-1].weight), "other weights are those of the seed"  # pyright: ignore[reportArgumentType]
    again = models()
    for left, right in zip(usual, again, strict=True):
        assert all(
            torch.equal(a, b) for a, b in zip(left.state_dict().values(), right.state_dict().values(), strict=True)
        )


@pytest.mark.parametrize("value", [torch.ones(4, 9), torch.zeros(35), torch.full((36,), -2.0), torch.ones(7).double()])
def test_balanced_values_keep_what_may_stand_for_all(value: torch.Tensor) -> None:
    other = balanced(value, 1)
    assert other.shape == value.shape
    assert other.dtype == value.dtype
    assert not torch.equal(other, value)
    flat = other.reshape(-1)
    assert flat[0] == flat[-1] == value.reshape(-1)[0]
    assert float(other.sum()) == pytest.approx(float(value.sum()), abs=1e-4)
    assert torch.equal(other.sign(), value.sign()) or not value.any()
    assert not torch.equal(other, balanced(value, 2))


@pytest.mark.parametrize("value", [torch.ones(4, 9), torch.zeros(35), torch.full((36,), -2.0)])
def test_bounded_values_keep_the_ends_and_the_largest(value: torch.Tensor) -> None:
    other = bounded(value, 1)
    flat, largest = other.reshape(-1), value.reshape(-1)[0]
    assert flat[0] == flat[-1] == other.max() == largest
    assert bool((flat[1:-1] < largest).all())
    assert bool((other > 0).all()) or not bool((value > 0).all())


@pytest.mark.parametrize("kind", [torch.bool, torch.int64])
def test_a_balanced_mask_keeps_its_ends(kind: torch.dtype) -> None:
    mask = balanced(torch.ones(1000, dtype=kind), 1)
    assert mask[0] == mask[-1] == 1
    assert 0 < int((mask == 0).sum()) < 998
    assert set(mask.tolist()) == {0, 1}


def test_few_elements_cannot_be_balanced() -> None:
    assert torch.equal(balanced(torch.ones(3), 1), torch.ones(3))


def test_a_punched_mask_has_zeros() -> None:
    mask = punched(torch.ones(1000), 1)
    assert set(mask.tolist()) == {0.0, 1.0}
    assert 600 < int(mask.sum()) < 900


@pytest.mark.parametrize("value", [torch.zeros(5, 7), torch.ones(5, 7), torch.ones(5, 7).bool(), torch.full((35,), 9)])
def test_one_element_is_touched(value: torch.Tensor) -> None:
    places = set()
    for seed in range(60):
        other = touched(value, seed)
        assert (other.shape, other.dtype) == (value.shape, value.dtype)
        (place,) = (other != value).reshape(-1).nonzero().reshape(-1).tolist()
        places.add(place)
    assert len(places) > 20
    assert torch.equal(touched(value, 3), touched(value, 3))


def test_two_neighbouring_rows_are_swapped() -> None:
    table = torch.arange(60.0).view(1, 20, 3)
    changed = {tuple((swapped(table, seed) != table)[0, :, 0].nonzero().reshape(-1).tolist()) for seed in range(60)}
    assert all(second == first + 1 for first, second in changed)
    assert len(changed) > 10
    assert torch.equal(swapped(table, 1).sort(dim=1).values, table)
    assert torch.equal(swapped(torch.ones(1), 1), torch.ones(1))


def test_rows_are_along_the_first_axis_that_has_several() -> None:
    table = torch.arange(30.0).view(1, 10, 3)
    other = shuffled(table, 1)
    assert other.shape == table.shape
    assert sorted(other[0, :, 0].tolist()) == table[0, :, 0].tolist() != other[0, :, 0].tolist()
    assert torch.equal(other[0, :, 2] - other[0, :, 0], torch.full((10,), 2.0))


def test_shuffled_rows_are_the_same_rows() -> None:
    triangle = torch.ones(20, 20).tril()
    other = shuffled(triangle, 1)
    assert not torch.equal(other, triangle)
    assert sorted(other.sum(1).tolist()) == sorted(triangle.sum(1).tolist())
    assert torch.equal(shuffled(triangle, 1), other)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_part_of_a_constant_is_a_quarter_of_its_slices(axis: int) -> None:
    changes = [partly(emptied, axis)(torch.ones(12, 16), seed) == 0 for seed in range(40)]
    for changed in changes:
        slices = changed.any(1 - axis)
        assert torch.equal(slices, changed.all(1 - axis))
        assert int(slices.sum()) == (3, 4)[axis]
    assert torch.stack(changes).any(0).all(), "every slice has its turn"


def test_a_part_of_few_slices_is_one() -> None:
    assert int((partly(varied, 0)(torch.ones(2), 1) != 1).sum()) == 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_refined_values_round_to_the_coarse_ones(dtype: torch.dtype) -> None:
    value = torch.randn(4096, generator=torch.Generator().manual_seed(3))
    value[:5] = torch.tensor([0.0, 1.0, -2.0, float("inf"), -float("inf")])
    cut, fine = coarse(value), refined(value, 7)
    assert torch.equal(cut.bfloat16().float(), cut)
    assert torch.equal(fine.to(dtype), cut.to(dtype))
    assert torch.equal(fine[:5], value[:5])
    assert ((fine[5:] / cut[5:] - 1) * 2**14 - 1.5).abs().max() <= 0.51
    assert (fine[cut < 1] < 1).all()


@pytest.mark.parametrize("rarer", [False, True])
def test_a_mask_opens_or_closes_in_part(rarer: bool) -> None:
    mask = torch.full((12, 12), float("-inf")).triu(1)
    other = mixed(mask, 5, rarer)
    changed = other != mask
    assert 0 < changed.sum() < 30
    assert set(other[changed].tolist()) == {0.0 if rarer else float("-inf")}
    assert torch.equal(mixed(torch.ones(3), 5, rarer), torch.ones(3))


def test_zeros_become_as_large_as_the_rest() -> None:
    other = filled(torch.tensor([0.0, -4.0, 0.0, 2.0]), 5)
    assert other[[1, 3]].tolist() == [-4.0, 2.0]
    assert all(1.5 <= value <= 4.5 for value in other[[0, 2]].tolist())
    assert filled(torch.zeros(2), 5).min() >= 0.5


@pytest.mark.parametrize("extent", [4, 9, 200])
def test_values_that_occur_once_are_exchanged_but_for_the_ends(extent: int) -> None:
    value = torch.arange(extent)
    for seed in range(40):
        for rarer in (False, True):
            other = mixed(value, seed, rarer)
            assert not torch.equal(other, value)
            assert torch.equal(other.sort().values, value)
            assert other[[0, -1]].tolist() == [0, extent - 1]


@pytest.mark.parametrize(
    "other",
    [varied, grown, rescaled, resigned, filled, balanced, touched, punched, emptied, bounded, partly(varied, 0)],
)
def test_complex_numbers_get_other_values(other: Other) -> None:
    ones = torch.ones(64, dtype=torch.complex64)
    changed = [other(ones, seed) for seed in range(4)]
    assert all(each.dtype == ones.dtype and each.shape == ones.shape for each in changed)
    assert all(bool(each.isfinite().all()) for each in changed)
    if other is not filled:  # only zeros get values
        assert not all(torch.equal(each, ones) for each in changed)
