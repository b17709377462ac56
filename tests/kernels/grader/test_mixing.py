"""Which elements of which inputs are changed to see who mixes them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from dice.kernels.grader import mixing
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.mixing import is_worth, mixed_pairs
from dice.kernels.grader.reference import Reference
from dice.kernels.records.evidence import OpUse
from dice.kernels.sandbox.replies import Mixed

PROBLEM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, {names}):
        return {result}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


def pairs(result: str, distance: mixing._Distance = "half", **inputs: str) -> dict[int, list[tuple[int, ...]]]:
    """By input that is looked at: the two places that are changed, and at the end how many numbers follow both."""
    code = PROBLEM.format(result=result, names=", ".join(inputs), inputs=", ".join(inputs.values()))
    reference = Reference("problem", code, torch.device("cpu"))
    run = SimpleNamespace(reference=reference, place=SimpleNamespace(device=torch.device("cpu")), weights_seed=1)
    drawn = reference.inputs(3)
    found: dict[int, list[tuple[int, ...]]] = {}
    for (before, *changed), met in mixed_pairs(cast(CandidateRun, run), drawn, distance):
        assert before is drawn
        (index, place), (_, other) = (the_change(before, each) for each in changed)
        found[index] = [place, other, (met,)]
    return found


def the_change(before: list[Any], after: list[Any]) -> tuple[int, tuple[int, ...]]:
    changes = [
        (index, *place) for index, (a, b) in enumerate(zip(before, after, strict=True)) for place in (a != b).nonzero()
    ]
    ((index, *place),) = changes
    return index, tuple(int(each) for each in place)


def test_elements_of_one_row_go_into_the_same_numbers_of_a_product() -> None:
    found = pairs("a @ b", a="torch.randn(6, 8)", b="torch.randn(8, 5)")
    assert found.keys() == {0, 1}
    assert (found[0][2], found[1][2]) == ((5,), (6,))
    assert found[0][0][0] == found[0][1][0]
    assert found[0][1][1] - found[0][0][1] == 4
    assert found[1][1][0] - found[1][0][0] == 4
    assert found[1][0][1] == found[1][1][1]


@pytest.mark.parametrize("result", ["x.softmax(1)", "x.sum(1)", "x.amax(1)", "x.cumsum(1)", "torch.logsumexp(x, 1)"])
def test_what_mixes_rows(result: str) -> None:
    assert pairs(result, x="torch.cat([torch.randn(5, 8), torch.full((1, 8), 9.0)])").keys() == {0}


@pytest.mark.parametrize("axis", ["x", "x.t()"])
def test_neighbours_meet_in_a_window(axis: str) -> None:
    steps = set()
    for _ in range(4):
        for first, second, *_ in pairs(f"nn.functional.avg_pool1d({axis}, 4)", x="torch.randn(40, 40)").values():
            steps.add(sum(second) - sum(first))
    assert steps == {1}


@pytest.mark.parametrize(("result", "mixes"), [("rows", set()), ("rows.sum(1)", {0})])
def test_numbers_stay_in_the_range_that_the_reference_takes(result: str, mixes: set[int]) -> None:
    rows = "nn.functional.embedding(torch.floor(x).long(), torch.arange(30.0).view(10, 3))"
    for _ in range(5):
        assert pairs(result.replace("rows", rows), x="torch.rand(4, 8) * 10").keys() == mixes


def test_an_input_that_the_reference_does_not_take_is_no_fault() -> None:
    refused = "x.sum(1) if torch.equal(x, torch.arange(48.0).view(6, 8)) else x.view(7, -1)"
    assert pairs(refused, x="torch.arange(48.0).view(6, 8)") == {}


def test_what_mixes_columns_is_found_along_them() -> None:
    first, second, met = pairs("x.sum(0)", x="torch.randn(6, 8)")[0]
    assert met == (1,)
    assert first[1] == second[1]
    assert second[0] - first[0] == 3


@pytest.mark.parametrize("result", ["x.relu()", "x * 2.0", "x.t().contiguous()"])
def test_what_works_on_single_elements_gives_no_pair(result: str) -> None:
    assert pairs(result, x="torch.randn(6, 8)") == {}


def test_whole_numbers_and_few_numbers_are_left_alone() -> None:
    assert pairs("x.sum() + n.sum()", x="torch.randn(7)", n="torch.arange(64)") == {}


def test_places_that_are_no_half_apart() -> None:
    steps = {
        place[1] - other[1]
        for other, place, _ in (pairs("x.sum(1)", "any", x="torch.randn(3, 12)")[0] for _ in range(40))
    }
    assert 6 not in steps
    assert min(steps) >= 2
    assert len(steps) > 3
    assert pairs("x.sum(1)", "any", x="torch.randn(12, 7)") == {}, "too few places"


@pytest.mark.parametrize(("extent", "most"), [(12, 11), (60, 16), (4096, 64)])
def test_near_places(extent: int, most: int) -> None:
    """What a block of a kernel adds up; two in three steps are drawn, so one is above a quarter of the most."""
    found = [pairs("x.sum(1)", "near", x=f"torch.randn(3, {extent})")[0] for _ in range(40)]
    steps = {other[1] - place[1] for place, other, _ in found}
    assert min(steps) >= 2
    assert most / 4 < max(steps) <= most
    assert 2 * max(steps) != extent


def test_places_in_one_window() -> None:
    first, second, met = pairs("nn.functional.avg_pool1d(x, 3, 1)", "any", x="torch.randn(1, 2, 40)")[0]
    assert second[2] - first[2] == 2
    assert met == (1,)


def test_the_two_elements_change_the_same_number_differently() -> None:
    assert pairs("x.amax(1)", "any", x="torch.arange(48.0).view(4, 12)")[0][2] == (1,)
    assert pairs("(x > 40).any(1).float()", "any", x="torch.arange(48.0).view(4, 12)") == {}


@pytest.mark.parametrize(
    ("words", "numbers", "worth"),
    [
        (1, 1, True),  # a loss
        (1, 3, False),  # a stray word where a window ends in three numbers
        (3, 3, True),
        (25, 3, False),
        (7, 9, False),
        (8, 9, True),
        (8, 32, True),  # a byte a number
        (8, 33, False),
        (800, 100, True),  # eight words a number: text
        (801, 100, False),
    ],
)
def test_an_answers_worth_is_more_than_stray_words(words: int, numbers: int, worth: bool) -> None:
    assert is_worth(words, numbers) is worth


def joined(mine: dict[str, int], theirs: dict[str, int]) -> int:
    uses = [{f"aten::{name}": OpUse(count=1, elements=n) for name, n in each.items()} for each in (mine, theirs)]
    run = SimpleNamespace(evidence=SimpleNamespace(candidate_ops=uses[0], reference_ops=uses[1]))
    return mixing._joined(cast(CandidateRun, run))


def test_additions_may_join_parts_unless_they_are_the_whole_reduction() -> None:
    assert joined({"add": 900, "mul": 50, "index_add_": 30}, {"sum": 1000}) == 930
    assert joined({"add": 950}, {"sum": 1000}) == 0
    assert joined({"add": 950}, {"sum": 1000, "add": 950}) == 950, "the reference adds as well"
    assert joined({"add": 950}, {"mm": 900, "sum": 10}) == 950, "halves of a product may be as large"
    assert joined({}, {"sum": 1000}) == 0


@pytest.mark.parametrize(
    ("staged", "with_more_room", "join", "found"),
    [
        (5, None, False, True),
        (5, None, True, False),  # PyTorch joined two parts, as many as ten elements
        (11, None, True, True),
        (0, 5, False, False),
        (None, 5, False, True),
        (None, 0, False, False),
        (None, None, False, False),  # it leaves more than there is room for
    ],
)
def test_what_is_mixed_between_launches(
    monkeypatch: pytest.MonkeyPatch, staged: int | None, with_more_room: int | None, join: bool, found: bool
) -> None:
    def look(run: CandidateRun, changed: Any, keep: int, order: list[int]) -> Mixed:
        wide = keep >= mixing._WIDE_ROOM
        return Mixed(pieces=None, staged=with_more_room if wide else staged, joined=join)

    monkeypatch.setattr(mixing, "_look", look)
    monkeypatch.setattr(mixing, "_room", lambda run: 100)
    monkeypatch.setattr(mixing, "_joined", lambda run: 10)
    monkeypatch.setattr(mixing, "mixed_pairs", lambda run, inputs, distance: iter([([], 1)]))
    run = SimpleNamespace(counts_launches=True, place=SimpleNamespace(backend="cpu"), draw_inputs=lambda seed: [])
    assert mixing._mixed_between(cast(CandidateRun, run)) is found
