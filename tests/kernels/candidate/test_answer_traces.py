"""What stood in memory before a launch, and whether an earlier launch had left it there."""

from __future__ import annotations

import pytest
import torch

from dice.kernels.candidate.answer_traces import AnswerTraces

PLACES = torch.tensor([17, 1400, 884, 3071])
"""A kernel leaves them; Python chooses one of them and tells the next launch."""


def copied(numbers: torch.Tensor, behind: int = 0) -> torch.Tensor:
    """Memory with these numbers and so many bytes of something else behind them."""
    other = torch.randint(0, 1 << 30, (behind // 8,), generator=torch.Generator().manual_seed(0))
    return torch.cat([numbers, other]).view(torch.uint8)


@pytest.mark.parametrize("behind", [0, 8, 1 << 16])
@pytest.mark.parametrize(("left", "share"), [(True, 0.0), (False, 1.0)])
def test_a_number_that_a_launch_has_left_was_made_by_kernels(behind: int, left: bool, share: float) -> None:
    answer = PLACES[2:3]
    traces = AnswerTraces(answer.nbytes, on_gpu=True)
    traces._ran_without = True
    launches = [
        (0, torch.zeros(96, dtype=torch.int64)),
        (1, PLACES if left else PLACES + 1),
        (2, answer),
    ]
    traces._moments = [(moment, copied(numbers, behind if moment == 1 else 0)) for moment, numbers in launches]
    assert traces.shares(answer).get("equal", 0.0) == share
