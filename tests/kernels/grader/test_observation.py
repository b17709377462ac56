"""When shared memory is poisoned; what it then finds: tests/kernels/builder/test_cpu_route.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from dice.kernels.cpu.race import Turn
from dice.kernels.cpu.runtime import Order
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.observation import mutated, poisoned_shared


@pytest.mark.parametrize(
    ("backend", "protocols", "poisons"),
    [
        ("cpu", ("strict",), True),
        ("cpu", ("paper", "strict"), True),
        ("cpu", ("paper",), False),
        ("cuda", ("strict",), False),
    ],
)
def test_strict_poisons_shared_memory_on_the_cpu_for_one_forward(
    backend: str, protocols: tuple[str, ...], poisons: bool
) -> None:
    turns: list[Any] = []
    place = SimpleNamespace(backend=backend, judging=SimpleNamespace(protocols=protocols))
    run = cast(CandidateRun, SimpleNamespace(place=place, take_turns=turns.append))
    with poisoned_shared(run):
        turns.append("forward")
    assert turns == ([Turn(Order.POISONED), "forward", Turn()] if poisons else ["forward"])


def test_what_a_candidate_says_of_its_inputs_may_have_any_structure() -> None:
    """The reference overwrites the second of two inputs."""
    inputs, own = [torch.zeros(2), torch.zeros(2)], [torch.zeros(2), torch.ones(2)]
    assert mutated(inputs, own, [torch.zeros(2), torch.ones(2)], "strict") == []
    assert mutated(inputs, own, (torch.ones(2), torch.ones(2)), "strict") == [0]
    assert mutated(inputs, own, [torch.zeros(2), torch.zeros(2)], "strict") == [], "nothing changed"
    assert mutated(inputs, own, [torch.zeros(2), torch.full((2,), 5.0)], "strict") == [1]
    for odd in ([], [torch.zeros(2)], None, {}, 1.0, torch.ones(2)):
        assert mutated(inputs, own, odd, "strict") == [0, 1]
