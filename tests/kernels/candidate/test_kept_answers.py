"""The last answer, overwritten where it is kept."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dice.kernels.candidate.kept_answers import Part, answers_of, held_tensors, overwrite_answers, telling_words


def _answer(seed: int) -> torch.Tensor:
    return torch.randn(64, generator=torch.Generator().manual_seed(seed))


def _memory(*pieces: torch.Tensor) -> torch.Tensor:
    return torch.cat(pieces).view(torch.int32)


@pytest.mark.parametrize(
    ("part", "spoilt"),
    [
        ("none", [False, False]),
        ("all", [True, True]),
        ("first", [True, False]),
        ("second", [False, True]),
    ],
)
def test_what_is_kept_is_overwritten(part: Part, spoilt: list[bool]) -> None:
    before, now = _answer(1), _answer(2)
    memory, earlier = _memory(now, torch.zeros(9), now), _memory(before, torch.zeros(9), before)
    numbers = overwrite_answers(now.clone(), [before], set(), [(memory, earlier)], part=part)
    found = memory.view(torch.float32)
    assert [bool(half.isnan().all()) for half in (found[:64], found[-64:])] == spoilt
    assert not bool(found[64:73].any())
    assert numbers == (64 + 64 * sum(spoilt), 128)


@pytest.mark.parametrize("begin", [0, 5])
@pytest.mark.parametrize("part", ["all", "first", "second"])
def test_copies_of_inputs_stay_though_the_answer_has_their_numbers(begin: int, part: Part) -> None:
    before, given = _answer(1), _answer(2)
    now = given.relu()
    stale = torch.randn(200)  # of an answer before, which changes nothing
    memory = _memory(torch.zeros(begin), given, now, stale, now)
    earlier = _memory(torch.zeros(begin), before, before, stale + 1, before)
    overwrite_answers(now.clone(), [before.relu()], set(), [(memory, earlier)], (given,), part)
    copy, *answers = memory.view(torch.float32)[begin:].split([64, 64, 200, 64])
    assert torch.equal(copy, given)
    spoilt = [bool(answer[now > 0].isnan().all()) for answer in (answers[0], answers[2])]
    assert spoilt == {"all": [True, True], "first": [True, False], "second": [False, True]}[part]


def test_a_copy_that_is_cut_off_stays_too() -> None:
    before, given = _answer(1), _answer(2)
    now, piece = given.relu(), slice(8, 56)
    memory, earlier = _memory(given[piece].clone()), _memory(before[piece].clone())
    overwrite_answers(now.clone(), [before.relu()], set(), [(memory, earlier)], (given,))
    assert torch.equal(memory.view(torch.float32), given[piece])


def test_the_returned_tensor_is_overwritten_unless_it_is_an_input_or_state() -> None:
    now = _answer(2)
    assert overwrite_answers(now, [_answer(1)], {now.untyped_storage().data_ptr()}, []) == (0, 0)
    assert not bool(now.isnan().any())
    assert overwrite_answers(now, [_answer(1)], set(), []) == (64, 0)
    assert bool(now.isnan().all())


def test_what_other_inputs_do_not_change_is_no_answer() -> None:
    now = _answer(2)
    memory = _memory(now)
    assert overwrite_answers(now.clone(), [now], set(), [(memory, torch.zeros_like(memory))]) == (0, 0)
    assert overwrite_answers(now.clone(), [_answer(1)], {0}, [(memory, memory.clone())]) == (
        64,
        0,
    )  # a table: its own alone
    assert torch.equal(memory, _memory(now))


def test_a_few_equal_numbers_are_a_coincidence() -> None:
    now = _answer(2)
    memory = _memory(now[:8], torch.ones(100))
    overwrite_answers(now.clone(), [_answer(1)], set(), [(memory, torch.zeros_like(memory))])
    assert torch.equal(memory, _memory(now[:8], torch.ones(100)))


def test_numbers_that_occur_anywhere_tell_nothing() -> None:
    values = torch.tensor([0.0, 1.0, -3.0, 0.3, 0.3, 17.0, float("nan"), float("inf")])
    assert sorted(telling_words(values).view(torch.float32).tolist()) == pytest.approx([0.3, 17.0])


def test_answers_are_floating_point_tensors() -> None:
    value: Any = {"a": torch.zeros(3), "b": (torch.zeros(2, dtype=torch.int64), torch.zeros(0))}
    value["c"] = torch.zeros(5).to(torch.float8_e5m2)  # NaN cannot be filled in
    assert [tuple(answer.shape) for answer in answers_of(value)] == [(3,)]


def test_tensors_are_found_wherever_they_are_held() -> None:
    class Odd:
        @property
        def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
            raise AssertionError("asked")

    kept = [Odd(), {"deep": (_answer(3),)}]
    assert any(item is kept[1]["deep"][0] for item in held_tensors())
