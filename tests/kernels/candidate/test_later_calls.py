"""What a program counts up is set ahead; answers that it keeps are overwritten, in new memory and in what nothing of the
program leads to."""

from __future__ import annotations

import contextlib
import sys
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest
import torch

from dice.kernels.candidate import extension_loader
from dice.kernels.candidate.later_calls import LaterCalls
from dice.kernels.candidate.program import Program


def _program() -> Any:
    accelerator = SimpleNamespace(honest=contextlib.nullcontext, settle=lambda: None)
    return SimpleNamespace(
        accelerator=accelerator, scratch="/nowhere", model=torch.nn.Linear(2, 2), inputs={}, outputs=None
    )


class Counting(torch.nn.Module):
    """Counts its calls in an attribute, in a buffer, and in two modules."""

    seen: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.register_buffer("seen", torch.zeros(3, dtype=torch.int32))

    def get_extra_state(self) -> int:
        """No tensor."""
        return self.calls


def _module(monkeypatch: pytest.MonkeyPatch, path: str | None) -> Any:
    module: Any = ModuleType(f"module_of_{path}")
    module.__file__, module.calls = path, 0
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


@pytest.mark.parametrize(
    ("before", "after", "spared", "numbers"),
    [
        (0, 20, [], 3),  # the attribute, the buffer, the variable of the candidate's module
        (5, 20, [], 3),
        (0, 20, ["seen", "_extra_state", "nothing"], 2),
        (0, 19, [], 0),
    ],
)
def test_what_counts_calls_is_set_ahead(
    monkeypatch: pytest.MonkeyPatch, before: int, after: int, spared: list[str], numbers: int
) -> None:
    program, own, other = _program(), _module(monkeypatch, "/nowhere/own.py"), _module(monkeypatch, "/lib/nowhere.py")
    program.model = model = Counting()
    builtin = _module(monkeypatch, None)
    later = LaterCalls(cast(Program, program))
    for calls in (before, 1, 1, after):
        for each in (model, own, other, builtin):
            each.calls += calls
        model.seen[1] += calls
        assert later.do_look(spared) == {}
        if calls == before:
            assert later.do_advancing(20) == {"numbers": 0, "moves": False}, "three looks are needed"
    assert later.do_advancing(20) == {"numbers": numbers, "moves": True}
    assert later.do_ahead(1000, 3, 0) == {}
    at = before + 2 + after
    there = 997 if numbers else at
    assert (model.calls, own.calls, other.calls, builtin.calls) == (there, there, at, at)
    assert model.seen.tolist() == [0, at if spared else there, 0]
    later._looks.pop()
    assert later.do_advancing(20) == {"numbers": 0, "moves": False}
    later.do_ahead(9000, 3, 0)
    assert model.calls == there, "nothing advances that was not found again"


def test_without_a_place_what_counts_is_set_ahead_by_calls() -> None:
    program = _program()
    program.model = Counting()
    later = LaterCalls(cast(Program, program))
    for calls in (0, 1, 5):
        program.model.calls += calls
        later.do_look([])
    later.do_advancing(5)
    later.do_ahead(0, 3, 100)
    assert program.model.calls == 106


def test_clocks_are_set_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extension_loader, "set_clocks_ahead", lambda seconds: seconds // 60)
    assert LaterCalls(cast(Program, _program())).do_clocks(120) == {"ways": 2}


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
    assert later.do_overwrite_answer(0, "all") == {"numbers": 128, "kept": 1}
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


def test_numbers_of_the_earlier_answer_in_another_order_are_not_kept() -> None:
    program = _program()
    later = LaterCalls(cast(Program, program))
    program.inputs[0], program.outputs = [torch.randn(64)], torch.randn(64)
    later.do_remember_answer()
    program.outputs = program.outputs.flip(0)
    assert later.do_overwrite_answer(0, "all") == {"numbers": 64, "kept": 0}, "only the verifier's own copies have them"


def test_an_answer_that_is_the_models_state_is_left() -> None:
    program, settled = _program(), list[bool]()
    program.accelerator.settle = lambda: settled.append(True)
    program.model.register_buffer("state", torch.randn(64))
    program.model.short = torch.ones(3, dtype=torch.int16)  # no whole words
    later = LaterCalls(cast(Program, program))
    program.inputs[0], program.outputs = [torch.eye(8).to_sparse()], program.model.state
    later.do_remember_answer()
    program.model.state += 1
    assert later.do_overwrite_answer(0, "all") == {"numbers": 0, "kept": 0}
    assert not bool(program.model.state.isnan().any())
    assert program.model.short.tolist() == [1, 1, 1]
    assert settled == [True]
