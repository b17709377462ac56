"""Where wrong elements lie: known patterns, each put into a right output, and what is said of them."""

from __future__ import annotations

import math

import pytest
import torch

from dice.kernels.mismatch import PICTURE_COLUMNS, PICTURE_ROWS, as_matrix, locate
from dice.kernels.records.explanation import Mismatch

POISON = torch.tensor(-1, dtype=torch.int32).view(torch.float32)


def output(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1)) + 3


def located(right: torch.Tensor, got: torch.Tensor) -> Mismatch:
    found = locate(right, got, "strict")
    assert found is not None
    return found


def test_equal_outputs_have_no_mismatch() -> None:
    right = output(4, 5)
    assert locate({"a": [right, 3]}, {"a": [right.clone(), 3]}, "strict") is None
    assert locate(right, right + 0.005, "paper") is None
    assert locate(right, right.double(), "strict") is None  # another type is another status


def test_a_number_is_written_as_people_read_it() -> None:
    found = located(torch.tensor([0.1, 1e-9, 5.0]), torch.tensor([0.7, 1e-9, 5.0]))
    assert (found.expected, found.got) == ("0.1", "0.7")
    whole = located(torch.tensor([16_777_217]), torch.tensor([16_777_218]))
    assert (whole.expected, whole.got) == ("16777217", "16777218")


def test_outputs_of_another_structure_are_another_status() -> None:
    right = output(2, 3)
    for expected, got in (([right[0], right[1]], right + 9), (right, [right + 9]), ({"a": right}, [right + 9])):
        assert locate(expected, got, "strict") is None
    for got in ((right + 9).double(), right.reshape(3, 2) + 9):
        assert locate(right, got, "strict") is None
    for expected, got in (([right], [right, right + 9]), ([right, right + 9], [right])):
        assert locate(expected, got, "strict") is None
    longer = locate([right], [right + 9, right + 9], "strict")
    assert longer is not None
    assert longer.where == "output[0]"


def test_an_unwritten_tail_of_each_row() -> None:
    right = output(6, 100)
    got = right.clone()
    got[:, 96:] = POISON
    found = located(right, got)
    assert (found.shape, found.dtype, found.total, found.wrong, found.unwritten) == ([6, 100], "float32", 600, 24, 24)
    assert (found.first, found.got, found.lowest, found.highest) == ([0, 96], "nan", [0, 96], [5, 99])
    assert float(found.expected) == pytest.approx(float(right[0, 96]), rel=1e-5)
    assert found.remarks == [
        "the last 4 columns of every row",
        "never written: all of them; they hold what the verifier fills fresh memory with",
    ]
    assert (found.rows_per_cell, found.columns_per_cell) == (1, 2)
    assert found.picture == ["." * 48 + "??"] * 6


def test_a_picture_tells_some_from_all() -> None:
    right = output(32, 120)
    got = right.clone()
    got[3, 7] += 1
    got[4:6, 10:12] += 1
    found = located(right, got)
    rows = [list("." * 60) for _ in range(16)]
    rows[1][3], rows[2][5] = "+", "#"
    assert found.picture == ["".join(row) for row in rows]
    assert (found.lowest, found.highest) == ([3, 7], [5, 11])


@pytest.mark.parametrize("shape", [(), (1,), (5,), (1000,), (100_000,), (3, 5, 7), (1, 4096), (4096, 1), (17, 61)])
def test_a_picture_fits_and_its_last_character_is_the_last_element(shape: tuple[int, ...]) -> None:
    right = output(*shape)
    got = right.clone()
    got.view(-1)[-1] += 1
    found = located(right, got)
    assert len(found.picture) <= PICTURE_ROWS
    assert all(len(row) <= PICTURE_COLUMNS for row in found.picture)
    assert "".join(found.picture).rstrip()[-1] in "+#"
    assert sum(character in "+#" for character in "".join(found.picture)) == 1
    assert found.first == [size - 1 for size in shape]


def test_one_dimension_is_laid_out_in_lines() -> None:
    mask = torch.arange(1000) >= 990
    matrix = as_matrix(mask)
    assert matrix.shape == (16, 64)
    assert int(matrix.sum()) == 10
    assert matrix[15, 30:40].all()


@pytest.mark.parametrize(
    ("change", "remark"),
    [
        (
            lambda got: got.view(-1)[-7:].add_(1),
            "the last 7 elements of 240, and no other: a tail that no thread reaches",
        ),
        (lambda got: got.add_(1), "every element is wrong"),
        (lambda got: got.add_(1), "all of them are off by 1"),
        (lambda got: got[::3].add_(1), "one row in 3, from 0 on"),
        (lambda got: got[::3].add_(1), "whole rows: 4 of 12"),
        (lambda got: got[:, 1::4].mul_(2), "one column in 4, from 1 on"),
        (lambda got: got[:, 1::4].mul_(2), "all of them are 2 times the right value"),
        (lambda got: got[2:4, 5].zero_(), "all of them are 0"),
        (lambda got: got[2:4, 5:7].zero_(), "the same 2 columns of 2 rows"),
    ],
)
def test_remarks(change, remark: str) -> None:
    right = output(12, 20)
    got = right.clone()
    change(got)
    assert remark in located(right, got).remarks


def test_swapped_dimensions_are_seen_in_any_shape() -> None:
    for shape in ((9, 9), (4, 6), (2, 3, 5)):
        right = output(*shape)
        got = right.transpose(-1, -2).contiguous().reshape(shape)
        assert "the values are the right ones with the last two dimensions swapped" in located(right, got).remarks
    plain = located(output(9, 9), output(9, 9) + 1)
    assert not any("swapped" in remark for remark in plain.remarks)


def test_the_first_wrong_tensor_of_several_is_described() -> None:
    right = {"a": (output(3), output(4)), "b": output(2)}
    got = {"a": (output(3), output(4).index_fill(0, torch.tensor(2), math.inf)), "b": output(2) + 1}
    found = locate(right, got, "paper")
    assert found is not None
    assert (found.where, found.first, found.got) == ("output['a'][1]", [2], "inf")


def test_integers_and_booleans_have_no_values_to_compare() -> None:
    for right in (torch.arange(6).reshape(2, 3), torch.tensor([True, False])):
        found = located(right, right.logical_not() if right.dtype is torch.bool else right + 1)
        assert found.remarks == ["every element is wrong"]
        assert found.unwritten == 0


def test_floats_of_eight_bits_have_a_mismatch_too() -> None:
    right = torch.tensor([[1.0, 2.0], [4.0, 8.0]])
    kind = torch.float8_e5m2
    found = locate(right.to(kind), right.T.contiguous().to(kind), "paper")
    assert found is not None
    assert found.wrong == 2
    assert "the values are the right ones with the last two dimensions swapped" in found.remarks
