"""Answers that a program keeps are overwritten, in new memory and in what nothing of the program leads to."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from dice.kernels.candidate.later_calls import LaterCalls
from dice.kernels.candidate.program import Program


def _program() -> Any:
    accelerator = SimpleNamespace(honest=contextlib.nullcontext, settle=lambda: None)
    return SimpleNamespace(
        accelerator=accelerator, scratch="/nowhere", model=torch.nn.Linear(2, 2), inputs={}, outputs=None
    )


@pytest.mark.parametrize("where", ["in the model", "elsewhere"])
def test_a_copy_in_new_memory_is_overwritten_and_an_input_is_not(where: str) -> None:
    program, elsewhere = _program(), list[torch.Tensor]()
    later = LaterCalls(cast(Program, program))
    program.inputs[0], program.outputs = [torch.randn(64)], torch.randn(64)
    later.do_remember_answer()
    given, answer = torch.randn(64), torch.randn(64)
    given[:32] = answer[:32]  # an answer may have its inputs' numbers
    program.inputs[0], program.outputs, copy = [given], answer, answer.clone()
    other = torch.randn(64)
    program.model.kept = (given, copy if where == "in the model" else None)
    elsewhere += [copy, other]
    assert later.do_overwrite_answer(0, "all") == {"numbers": 128, "kept": 64}
    assert bool(copy.isnan().all())
    assert not bool(given.isnan().any())
    assert not bool(other.isnan().any())


def test_what_stood_there_before_is_left() -> None:
    program, table = _program(), torch.randn(64)
    later = LaterCalls(cast(Program, program))
    program.inputs[0], program.outputs = [torch.randn(64)], torch.randn(64)
    later.do_remember_answer()
    program.outputs = table.clone()  # rows of a table that was there
    assert later.do_overwrite_answer(0, "all") == {"numbers": 64, "kept": 0}
    assert not bool(table.isnan().any())
