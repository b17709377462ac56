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
        (0, [True, False]),
        (1, [False, True]),
    ],
)
def test_what_is_kept_is_overwritten(part: Part, spoilt: list[bool]) -> None:
    before, now = _answer(1), _answer(2)
    memory, earlier = _memory(now, torch.zeros(9), now), _memory(before, torch.zeros(9), before)
    numbers = overwrite_answers(now.clone(), [before], set(), [(memory, earlier)], part=part)
    found = memory.view(torch.float32)
    assert [bool(half.isnan().all()) for half in (found[:64], found[-64:])] == spoilt
    assert not bool(found[64:73].any())
    assert numbers == (64 + 64 * sum(spoilt), 2)


@pytest.mark.parametrize("together", [False, True])
def test_of_several_copies_one_is_overwritten_at_a_time(together: bool) -> None:
    """ReLU's input has the answer's numbers: beside it, element by element, or one behind the other."""
    before, given = _answer(1), _answer(2)
    now, was = given.relu(), before.relu()

    def laid_out(*pieces: torch.Tensor) -> torch.Tensor:
        return (torch.stack(pieces, 1) if together else torch.cat(pieces)).reshape(-1).clone().view(torch.int32)

    for nth in range(3):
        memory, other = laid_out(given, now), now.clone().view(torch.int32)
        kept = [(memory, laid_out(before, was)), (other, was.clone().view(torch.int32))]
        numbers, copies = overwrite_answers(now.clone(), [was], set(), kept, part=nth)
        found = memory.view(torch.float32)
        pieces = [*(found.view(64, 2).unbind(1) if together else found.split(64)), other.view(torch.float32)]
        spoilt = [bool(piece[now > 0].isnan().all()) for piece in pieces]
        assert spoilt == [place == nth for place in range(3)]
        assert all(piece.isnan().any() == spoilt[i] for i, piece in enumerate(pieces))
        assert copies == 3
        assert numbers == int((now != was).sum()) + int((now > 0).sum())


def test_a_number_that_an_answer_has_twice_makes_no_second_copy() -> None:
    now = torch.cat([_answer(2), _answer(2)[:8]])
    memory = _memory(now)
    assert overwrite_answers(now.clone(), [_answer(1).repeat(2)[:72]], set(), [(memory, ~memory)])[1] == 1
    assert bool(memory.view(torch.float32).isnan().all())


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
