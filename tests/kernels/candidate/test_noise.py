"""Finite numbers in memory that is handed out next."""

from __future__ import annotations

import pytest
import torch

from dice.kernels.candidate.noise import leave, nearly_right, noisy_blocks, sizes_of


def test_sizes_of_nested_tensors() -> None:
    value = [torch.zeros(3), (torch.zeros(2, dtype=torch.int64), 5), {"a": torch.zeros(0)}, None]
    assert sizes_of(value) == [12, 16, 0]


def test_the_blocks_hold_finite_numbers_that_differ_each_time() -> None:
    one, other = (noisy_blocks([10, 0, 1 << 40, 1 << 19], torch.device("cpu")) for _ in range(2))
    assert [block.nbytes for block in one[:2]] == [12, 1 << 19]
    for first, second in zip(one, other, strict=True):
        assert bool(first.isfinite().all())
        assert not torch.equal(first, second)


def test_nothing_is_drawn_from_the_default_generator() -> None:
    torch.manual_seed(7)
    plain = torch.rand(4)
    torch.manual_seed(7)
    noisy_blocks([64, 1024], torch.device("cpu"))
    assert torch.equal(torch.rand(4), plain)


@pytest.mark.parametrize(
    "answer",
    [
        torch.linspace(-3, 3, 640).reshape(10, 64).T,
        torch.tensor(2.0, dtype=torch.float64),
        torch.full((65,), -1.0, dtype=torch.bfloat16),
        torch.arange(-64, 64),
        torch.zeros(200, dtype=torch.bool),
    ],
    ids=["a view", "a number", "16 bits", "whole numbers", "truth"],
)
def test_of_a_nearly_right_answer_a_few_elements_are_wrong(answer: torch.Tensor) -> None:
    (near,) = nearly_right([answer])
    wrong = int((near != answer.reshape(-1)).sum())
    assert near.dtype == answer.dtype
    assert 1 <= wrong <= max(1, -(-answer.numel() // 64))
    assert not near.is_floating_point() or float((near - answer.reshape(-1)).abs().max()) >= 1


def test_answers_that_are_too_large_or_of_rare_types_are_left_out() -> None:
    assert nearly_right([torch.empty(1 << 25), torch.zeros(4, dtype=torch.complex64), torch.empty(0), None, 3]) == []


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.bfloat16, torch.int64])
def test_pieces_of_memory_with_an_answer_lie_between_free_ones(dtype: torch.dtype) -> None:
    answer = torch.arange(1000).to(dtype)
    between = leave([answer, answer[:3]], torch.device("cpu"))
    assert len(between) > 8
    for block, held in ((between[0], answer), (between[-1], answer[:3])):
        assert block.nbytes > held.nbytes
        assert torch.equal(block[: held.nbytes].view(dtype), held)
