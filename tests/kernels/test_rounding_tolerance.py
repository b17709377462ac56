"""What rounding alone explains, and what it does not. Truths are computed here by other means: exact fractions, fp64 sums."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
import torch

from dice.kernels.rounding_tolerance import Truth, disagreement, farther, is_known


def same(value: torch.Tensor) -> Truth:
    """A reference that rounds nothing."""
    return Truth(value, value.double() if value.is_floating_point() else value, value)


def wrong(truth: Truth, actual: Any) -> bool:
    return bool(disagreement(truth, actual).message)


@pytest.mark.parametrize(
    ("dtype", "passes", "fails"),
    [
        (torch.float64, 1e-13, 1e-10),
        (torch.float32, 1e-6, 1e-3),
        (torch.float16, 1e-3, 3e-2),
        (torch.bfloat16, 1e-2, 0.2),
    ],
)
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_each_dtype_has_its_floor_at_every_scale(dtype: torch.dtype, passes: float, fails: float, scale: float) -> None:
    value = (torch.arange(1, 65, dtype=torch.float64) / 64 * scale).to(dtype)
    assert not wrong(same(value), (value.double() * (1 + passes)).to(dtype))
    assert wrong(same(value), (value.double() * (1 + fails)).to(dtype))


@pytest.mark.parametrize(("dtype", "share"), [(torch.float64, 1e-12), (torch.float32, 5e-5)])
def test_a_small_element_has_the_tolerance_of_its_tensors_rms(dtype: torch.dtype, share: float) -> None:
    """Beside 99 elements of 100: the rms is 99.5."""
    value = torch.full((100,), 100.0, dtype=dtype)
    value[7] = 0.5
    for off, is_wrong in ((0.8 * share * 99.5, False), (1.2 * share * 99.5 + 1e-6, True)):
        got = value.clone()
        got[7] += off
        assert wrong(same(value), got) is is_wrong


def test_small_outputs_are_not_within_reach_of_zero() -> None:
    softmax = torch.full((10_000,), 1e-4)
    assert torch.allclose(torch.zeros_like(softmax), softmax, atol=1e-2, rtol=1e-2)
    assert wrong(same(softmax), torch.zeros_like(softmax))


def test_a_sum_that_cancels_has_the_tolerance_of_its_terms() -> None:
    """A serial fp32 sum against the exact one: far off in relation to the result, not to what rounding does."""
    terms = torch.tensor([1e4 * math.sin(i * i) for i in range(4096)])
    terms = torch.cat([terms, -terms.flip(0) + 1e-3])
    serial = torch.tensor(0.0)
    for term in terms:
        serial = serial + term
    exact = float(sum((Fraction(float(term)) for term in terms), Fraction(0)))
    assert abs(float(serial) - exact) > 1e-4 * abs(exact)
    signs = torch.where(torch.arange(len(terms)) % 3 == 0, 1.0, -1.0).double()
    moved = (terms.double() * (1 + 2.0**-24 * signs)).sum()
    truth = Truth(terms.sum(), torch.tensor(exact, dtype=torch.float64), moved)
    assert not wrong(truth, serial)
    assert wrong(truth, torch.tensor(exact + 1.0))


def test_one_wrong_element_among_many_is_seen() -> None:
    value = torch.linspace(-1, 1, 1001)
    got = value.clone()
    got[17] += 1e-3
    found = disagreement(same(value), got)
    assert "1 of 1001 elements differ; first at [17]" in found.message
    assert found.defined == 1001


@pytest.mark.parametrize(
    ("expected", "got", "is_wrong"),
    [
        ([1.0, math.nan], [1.0, 5.0], False),  # nothing is defined there
        ([1.0, math.nan], [math.nan, math.nan], True),
        ([1.0, math.inf], [1.0, math.inf], False),
        ([1.0, math.inf], [1.0, -math.inf], True),
        ([1.0, math.inf], [1.0, math.nan], True),
        ([1.0, math.inf], [1.0, 3e38], True),
        ([1.0, 2.0], [1.0, math.inf], True),
    ],
)
def test_nan_and_inf(expected: list[float], got: list[float], is_wrong: bool) -> None:
    assert wrong(same(torch.tensor(expected)), torch.tensor(got)) is is_wrong


def test_what_fp32_cannot_hold_is_left_open() -> None:
    truth = Truth(torch.tensor([math.inf]), torch.tensor([1e39], dtype=torch.float64), torch.tensor([1e39]))
    found = disagreement(truth, torch.tensor([3e38]))
    assert (found.message, found.defined) == ("", 0)


def test_integers_are_exact_unless_rounding_decides() -> None:
    firm = torch.tensor([3, 4, 5])
    assert not wrong(same(firm), firm.clone())
    assert wrong(same(firm), torch.tensor([3, 4, 6]))
    tie = Truth(firm, firm, torch.tensor([3, 9, 5]))
    assert not wrong(tie, torch.tensor([3, 8, 5]))
    assert not wrong(tie, torch.tensor([8, 4, 9]))  # ties that did not change by luck
    many = Truth(firm.repeat(3), firm.repeat(3), torch.cat([torch.tensor([3, 9, 5]), firm, firm]))
    assert wrong(many, torch.tensor([8, 8, 8]).repeat(3))
    flags = torch.tensor([True, False])
    assert wrong(same(flags), ~flags)
    assert disagreement(same(flags), ~flags, lambda dtype: dtype.is_floating_point).message == ""


def test_a_jump_widens_the_tolerance_of_its_own_element_only() -> None:
    floor = torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0])
    truth = Truth(floor, floor.double(), torch.tensor([0.0, 1.0, 1.0, 3.0, 4.0]))
    assert not wrong(truth, torch.tensor([0.0, 1.0, 1.0, 3.0, 4.0]))
    assert wrong(truth, torch.tensor([0.0, 1.0, 2.0, 2.0, 4.0]))


def test_nested_outputs_and_numbers() -> None:
    value = torch.ones(4)
    nested = {"a": (value, 2.0), "b": [value, None], "c": value + 1j}
    wide = {"a": (value.double(), 2.0), "b": [value.double(), None], "c": (value + 1j).to(torch.complex128)}
    truth = Truth(nested, wide, wide)
    assert disagreement(truth, nested).message == ""
    assert "output['a'][1]" in disagreement(truth, {**nested, "a": (value, 2.1)}).message
    assert "output['b'][0]" in disagreement(truth, {**nested, "b": [value * 1.01, None]}).message
    assert "output['c']" in disagreement(truth, {**nested, "c": value + 1.01j}).message


def test_another_computation_is_no_truth() -> None:
    value = torch.linspace(1, 2, 100)
    assert is_known(value, value.double() * (1 + 1e-6))
    assert not is_known(value, value.double().flip(0))
    jump = value.double()
    jump[3] = 7
    assert is_known(value, jump)  # one element decides nothing


def test_a_number_may_come_as_a_tensor_and_may_be_any_number() -> None:
    assert not wrong(same_number(2.5), torch.tensor([2.5]))
    assert wrong(same_number(2.5), torch.tensor([3.5]))
    for number in (2**200, 2**63, -(2**63), -(2**63) - 1):
        assert wrong(same_number(7), number)
    assert not wrong(same_number(2.5), torch.tensor([3.5, 3.5]))  # another shape is another status


def same_number(value: float) -> Truth:
    return Truth(value, value, value)


def test_a_narrow_type_has_the_floor_of_bfloat16() -> None:
    value = torch.tensor([1.0, 2.0]).to(torch.float8_e5m2)
    assert is_known(value, value.double())
    assert not is_known(value, value.double() + 1)


def test_of_two_moves_the_farther_one_counts_for_each_element() -> None:
    value = torch.tensor([1.0, 2.0, 3.0, 4.0])
    moved = torch.tensor([1.1, 2.0, 3.0, math.nan]).double()
    one = Truth({"y": value, "n": torch.tensor([5, 6])}, {"y": value.double(), "n": torch.tensor([5, 6])}, {
        "y": moved, "n": torch.tensor([5, 7]),
    })  # fmt: skip
    both = farther(one, {"y": torch.tensor([1.01, 2.2, math.inf, 4.0]).double(), "n": torch.tensor([4, 6])})
    assert both.moved["y"][:3].tolist() == pytest.approx([1.1, 2.2, math.inf])
    assert both.moved["y"][3].isnan()
    assert both.moved["n"].tolist() == [4, 7]
    got = {"y": torch.tensor([1.0, 2.5, 0.0, 0.0]), "n": torch.tensor([5, 6])}
    assert wrong(one, got)
    assert not wrong(both, got)
    assert farther(Truth(value, value, value), value[:2]).moved is value


def test_nan_is_open_where_the_reference_changed() -> None:
    value = torch.tensor([math.inf, 0.0, 3.0, 4.0])
    truth = Truth(value, value.double(), value.double(), torch.tensor([1.0, 2.0, 3.0, 4.0]).double())
    for got, is_wrong in [
        ([math.nan, math.nan, 3.0, 4.0], False),
        ([math.inf, 0.0, 3.0, math.nan], True),  # no Inf reaches it
        ([math.inf, 0.5, 3.0, 4.0], True),
        ([3e38, 0.0, 3.0, 4.0], True),
    ]:
        assert wrong(truth, torch.tensor(got)) == is_wrong


def test_what_stays_by_luck_where_all_is_lost_blames_nobody() -> None:
    exact = torch.zeros(1000).double()
    moved = exact.clone()
    moved[:500] = 1.0
    got = torch.zeros(1000)
    got[480:550] = 1.0  # 50 that no move showed, for 500 that it did
    assert not wrong(Truth(exact.float(), exact, moved), got)
    got[480:551] = 1.0
    assert wrong(Truth(exact.float(), exact, moved), got)
