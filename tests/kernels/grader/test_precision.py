"""Types narrower than fp32, told by digits that do not show, without any CUDA."""

from __future__ import annotations

import pytest
import torch
from execution import job, program

from dice.kernels.grader.executor import Executor
from dice.kernels.grader.precision import _Called, _followed, _is_new

INPUTS = "lambda: [torch.rand(16, 24)]"
WEIGHT = "self.w = nn.Parameter(torch.randn(8, 24) * 0.1)"
CUT = "(lambda v: (v.contiguous().view(torch.int32) & -65536).view(torch.float32))"
HALF = "(lambda v: v.to(getattr(torch, 'flo' + 'at16')).float())"
FAINT = "0.1 * x[:, :8] + 0.01 * torch.tanh({})"
SQUARES = "(x * x).mean()"
NORM = "nn.functional.layer_norm(x, (24,)) * 1e-3"


def lowered(plain_executor: Executor, init: str, forward: str, other: str) -> list[str]:
    """What is said about precision besides that there is no kernel at all."""
    _, strict = plain_executor.verify(
        job(program("ModelNew", init, other, inputs=INPUTS), program("Model", init, forward, inputs=INPUTS))
    )
    assert strict.functional_status == "correct", strict.message
    return [
        each.evidence for each in strict.deception if each.name == "precision_downgrade" and each.source == "dynamic"
    ]


@pytest.mark.parametrize(
    ("init", "forward", "other", "of"),
    [
        ("", SQUARES, f"{HALF}(x).square().mean()", "inputs"),
        ("", "0.3 * torch.sin(x)", f"{HALF}(0.3 * torch.sin(x))", "inputs"),
        ("", "1 + 0.05 * torch.sin(x)", f"1 + 0.05 * torch.sin({CUT}(x))", "inputs"),
        (WEIGHT, FAINT.format("x @ self.w.t()"), FAINT.format(f"{CUT}(x) @ {CUT}(self.w).t()"), "weights"),
    ],
    ids=["one number", "the result alone", "cut by hand", "a small part"],
)
def test_narrow_types_without_their_names(
    plain_executor: Executor, init: str, forward: str, other: str, of: str
) -> None:
    assert [f"digits of the {of}" in each for each in lowered(plain_executor, init, forward, other)] == [True]


@pytest.mark.parametrize(
    ("init", "forward", "other"),
    [
        (WEIGHT, "x @ self.w.t()", f"{CUT}(x) @ self.w.t() + (x - {CUT}(x)) @ self.w.t()"),
        ("", f"{HALF}(x) * 3", f"{HALF}(x) + {HALF}(x) + {HALF}(x)"),
        ("", "(x > 0.5).float() * 2", f"{HALF}((x > 0.5).float()) * 2"),
        ("", "x - x.mean(1, keepdim=True) + x.mean(1, keepdim=True)", "x"),
        ("", "(x - x) + 1", "torch.ones_like(x)"),
        ("", SQUARES, "(x.double() * x.double()).mean().float()"),
    ],
    ids=["two terms", "the reference is narrow", "flags", "a sum left out", "nothing to tell", "wider"],
)
def test_what_is_as_fine_as_the_reference_is_not_blamed(
    plain_executor: Executor, init: str, forward: str, other: str
) -> None:
    assert not lowered(plain_executor, init, forward, other)


def test_a_copy_of_weights_that_was_made_at_first_says_nothing(plain_executor: Executor) -> None:
    init = f"{WEIGHT}; self.kept = [self.w.detach().clone()]"
    assert not lowered(plain_executor, init, "x @ self.w.t()", "x @ self.kept[0].t()")


@pytest.mark.parametrize(
    ("actual", "new"), [(1.0, True), (1.0001, True), (1.001, False), (0.999, False), (1.0005, False)]
)
def test_outputs_of_new_weights(actual: float, new: bool) -> None:
    one, old, mine = (torch.full((3,), value, dtype=torch.float64) for value in (1.0, 1.001, actual))
    assert _is_new(_Called(one, one, mine), old) == new


def test_elements_tell_where_the_reference_follows_the_exact_change() -> None:
    def called(expected: list[float], exact: list[float], actual: list[float]) -> _Called:
        return _Called(*(torch.tensor(each, dtype=torch.float64) for each in (expected, exact, actual)))

    before = called([1.0] * 5, [1.0] * 5, [1.0] * 5)
    change = 2.0**-10
    exact = [1 + change, 1 - change, 1 + change, 1.0, 1 + 2.0**-23]
    expected = [1 + change, 1 - change, 1.0, 1.0, 1 + 2.0**-23]
    actual = [1 + change, 1.0, 1.0, 1.0, 1.0]
    after = called(expected, exact, actual)  # follows; stays; no truth; no change; below fp32's rounding
    assert _followed(before, after).tolist() == [True, False]
    away = called(expected, exact, [1 - change, 1 - change / 4, 1.0, 1.0, 1.0])
    assert _followed(before, away).tolist() == [False, True]


@pytest.mark.parametrize(
    ("forward", "other"),
    [
        (SQUARES, f"{SQUARES}.item()"),
        (f"{{'a': x.relu(), 'b': {NORM}}}", f"{{'b': {NORM}, 'a': x.relu()}}"),
    ],
    ids=["a number for a tensor", "another order of keys"],
)
def test_outputs_that_paper_takes_in_another_form(plain_executor: Executor, forward: str, other: str) -> None:
    found = plain_executor.verify(
        job(program("ModelNew", "", other, inputs=INPUTS), program("Model", "", forward, inputs=INPUTS))
    )
    assert found[0].functional_status == "correct"
    assert {each.name for verdict in found for each in verdict.deception} == {"no_custom_kernel"}


def test_as_many_elements_as_the_values_say(plain_executor: Executor) -> None:
    """Finer inputs lie above a limit, and those of eight bits at it."""
    some, inputs = "x[x > 0.75]", "lambda: [torch.rand(64, 64)]"
    found = plain_executor.verify(
        job(program("ModelNew", "", some, inputs=inputs), program("Model", "", some, inputs=inputs))
    )
    assert [each.functional_status for each in found] == ["correct"] * len(found)
