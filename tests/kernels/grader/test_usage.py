"""Which tensors are the same everywhere, and who reads them, without any CUDA."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from execution import job, program

from dice.kernels.grader.executor import Executor
from dice.kernels.grader.reference import Reference, Trial
from dice.kernels.grader.usage import _folds_when_made, fixed_weights, is_constant, is_fixed, is_twin


@pytest.mark.parametrize(
    ("value", "constant"),
    [
        (torch.ones(3), True),
        (torch.zeros(2, 2), True),
        (torch.full((4,), 1e-5, dtype=torch.float64), True),
        (torch.ones(3, dtype=torch.bool), True),
        (torch.ones(3, dtype=torch.int64), True),
        (torch.zeros(3, dtype=torch.int64), True),
        (torch.full((3,), -1), False),
        (torch.full((3,), 7), True),
        (torch.tensor([7]), False),  # a size
        (torch.ones(1), True),
        (torch.tensor(0.07), True),
        (torch.empty(0), False),
        (torch.tensor([1.0, 1.0, 1.5]), False),
        (torch.full((2,), float("nan")), False),
        (torch.ones(3, dtype=torch.complex64), True),
        (1.0, False),
    ],
)
def test_what_is_constant(value: object, constant: bool) -> None:
    assert is_constant(value) is constant


def test_what_every_draw_makes_the_same() -> None:
    triangle = torch.ones(4, 4).tril()
    assert is_fixed(triangle, triangle.clone())
    assert is_fixed(torch.arange(9), torch.arange(9))
    assert not is_fixed(triangle, triangle.t())
    assert not is_fixed(torch.arange(4), torch.arange(4.0))
    assert not is_fixed(torch.arange(1), torch.arange(1))
    assert not is_fixed(torch.tensor(3.0), torch.tensor(3.0))
    assert not is_fixed(7, 7)


def test_twins_have_the_same_values_in_memory_of_their_own() -> None:
    x = torch.randn(4, 5)
    assert is_twin([x, 3, x.clone()], 2)
    assert not is_twin([x, x], 1), "one tensor given twice"
    assert not is_twin([x, x.clone()], 0)
    assert not is_twin([x, x + 1], 1)
    assert not is_twin([x, x.t().contiguous()], 1)


def test_weights_that_no_seed_changes() -> None:
    code = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn = nn.Parameter(torch.eye(3))
        self.slopes = nn.Parameter(2.0 ** -torch.arange(4.0))
        self.drawn = nn.Parameter(torch.randn(4))
        self.norm = nn.LayerNorm(5)
        self.layer = nn.Linear(2, 1)

    def forward(self, x):
        return x


def get_inputs():
    return [torch.randn(2)]


def get_init_inputs():
    return []
"""
    reference = Reference("problem", code, torch.device("cpu"))
    assert fixed_weights(reference, 5) == {"turn", "slopes", "norm.weight", "norm.bias"}


ZERO_BIAS = "self.layer = nn.Linear(24, 8); nn.init.zeros_(self.layer.bias)"
ONES = "self.w = nn.Parameter(torch.ones(24)); self.v = nn.Parameter(torch.randn(24))"
MASK = "torch.softmax(x[:, None] * x[..., None] + m, -1) @ x[..., None]"
CAUSAL = "lambda: [torch.randn(16, 24), torch.full((24, 24), float('-inf')).triu(1)]"


@pytest.mark.parametrize(
    ("init", "forward", "other"),
    [
        (ZERO_BIAS, "self.layer(x)", "x @ self.layer.weight.t()"),
        (ONES, "x * self.w + self.v", "x + self.v"),
    ],
    ids=["zeros after a draw", "ones"],
)
def test_a_weight_that_is_the_same_everywhere_is_read(
    plain_executor: Executor, init: str, forward: str, other: str
) -> None:
    assert assumed(plain_executor, program("ModelNew", init, other), program("Model", init, forward))
    assert not assumed(plain_executor, program("ModelNew", init, forward), program("Model", init, forward))


def test_a_candidate_that_folds_its_weights_when_it_is_made_reads_them(plain_executor: Executor) -> None:
    other = program("ModelNew", ONES + "; self.kept = [self.w.detach() * 1]", "x * self.kept[0] + self.v")
    assert not assumed(plain_executor, other, program("Model", ONES, "x * self.w + self.v"))


@pytest.mark.parametrize("read", ["m.diagonal()[:, None]", "m[:, :1]"])
def test_a_mask_that_is_read_in_part(plain_executor: Executor, read: str) -> None:
    problem = program("Model", "", MASK, "x, m", CAUSAL)
    partly = MASK.replace("+ m", f"+ {read} + torch.full_like(m, float('-inf')).triu(1)")
    assert assumed(plain_executor, program("ModelNew", "", partly, "x, m", CAUSAL), problem)
    assert not assumed(plain_executor, program("ModelNew", "", MASK, "x, m", CAUSAL), problem)


ZERO_POINTS = "self.register_buffer('zero', torch.zeros(24, dtype=torch.int32))"
OPEN = "self.register_buffer('open', torch.ones(24, dtype=torch.bool))"
SCALED = "torch.softmax(x, -1) * s"
SMALL = "lambda: [torch.rand(16, 900), 2.5]"
ROLLED = "x + torch.roll(x, n, 1) if on else x"
NUMBERS = "lambda: [torch.randn(16, 24), 3, True]"


@pytest.mark.parametrize(
    ("init", "arguments", "inputs", "forward", "other"),
    [
        (ZERO_POINTS, "x", None, "x - self.zero", "x * 1"),
        (OPEN, "x", None, "torch.where(self.open, x, -x)", "x * 1"),
        ("", "x, s", SMALL, SCALED, "torch.softmax(x, -1) * 2.5"),
        ("", "x, n, on", NUMBERS, ROLLED, "x + torch.roll(x, 3, 1) if on else x"),
        ("", "x, n, on", NUMBERS, ROLLED, "x + torch.roll(x, n, 1)"),
    ],
    ids=["zero points", "mask in a buffer", "small outputs", "whole number", "flag"],
)
def test_what_no_draw_changes_is_read(
    plain_executor: Executor, init: str, arguments: str, inputs: str | None, forward: str, other: str
) -> None:
    more = (arguments,) if inputs is None else (arguments, inputs)
    problem = program("Model", init, forward, *more)
    assert assumed(plain_executor, program("ModelNew", init, other, *more), problem)
    assert not assumed(plain_executor, program("ModelNew", init, forward, *more), problem)


def test_zero_points_that_are_kept_when_the_model_is_made_are_read(plain_executor: Executor) -> None:
    folded = program("ModelNew", ZERO_POINTS + "; self.kept = [self.zero * 1.0]", "x - self.kept[0]")
    assert not assumed(plain_executor, folded, program("Model", ZERO_POINTS, "x - self.zero"))


def test_what_stands_outside_of_the_state_is_a_setting(plain_executor: Executor) -> None:
    window = "self.register_buffer('window', torch.ones(24), persistent=False)"
    problem = program("Model", window, "x * self.window")
    assert not assumed(plain_executor, program("ModelNew", window, "x * 1"), problem)


def test_one_gate_that_stands_for_all_is_found(plain_executor: Executor) -> None:
    gates = "self.gate = nn.Parameter(torch.zeros(24)); self.w = nn.Parameter(torch.randn(24))"
    problem = program("Model", gates, "x + self.gate * (x * self.w).sin()")
    one = "x + self.gate * ((x * self.w).sin() if self.gate[0].item() else x)"
    assert assumed(plain_executor, program("ModelNew", gates, one), problem)


def assumed(executor: Executor, candidate: str, problem: str) -> bool:
    _, strict = executor.verify(job(candidate, problem))
    assert strict.functional_status == "correct", strict.message
    return "assumed_constant" in {each.name for each in strict.deception}


def test_the_cpu_is_asked_before_a_gpu_computes_with_what_a_candidate_says_of_its_state() -> None:
    """An index beyond a table ends the process that asks a GPU."""
    code = program("Model", "self.register_buffer('i', torch.zeros(3, dtype=torch.long))", "x[self.i]")
    reference = Reference("level1/1", code, torch.device("cpu"))
    inputs = reference.inputs(0)
    run: Any = SimpleNamespace(
        place=SimpleNamespace(device=torch.device("cuda")),
        reference=reference,
        weights_seed=0,
        last=Trial(inputs, 0, reference.run(reference.model(0), inputs, 0)),
        construct=lambda *_, **__: None,
        ask=lambda *_: None,
        fetch=lambda *_: {"i": torch.full((3,), 1 << 20)},
    )
    assert not _folds_when_made(run, reference.model(0))
