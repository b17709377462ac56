"""Relations among weights or inputs that a problem makes and nobody promises, without any CUDA."""

from __future__ import annotations

import pytest
import torch
from execution import job, program

from dice.kernels.grader.executor import Executor
from dice.kernels.grader.reference import Reference
from dice.kernels.grader.usage import drawn_elements

COPY = """
self.first = nn.Linear(24, 8)
self.second = nn.Linear(24, 8)
self.second.load_state_dict(self.first.state_dict())
"""
UNIT = "self.w = nn.Parameter(nn.functional.normalize(torch.randn(8, 24), dim=1))"
POSITIVE = "self.w = nn.Parameter(torch.rand(8, 24))"
GAIN = """
self.v = nn.Parameter(torch.randn(8, 24))
self.g = nn.Parameter(self.v.detach().norm(dim=1))
"""
SHARES = """
self.w = nn.Parameter(torch.softmax(torch.randn(8, 24), dim=1))
"""
CORNER = "self.w = nn.Parameter(torch.randn(8, 24).tril())"
PADDED = "self.table = nn.Embedding(6, 8, padding_idx=2)"
IDS_OF_X = "x[:, :3].long().clamp(0, 5)"
PICKED = f"self.table.weight[{IDS_OF_X}]"
TIED = """
self.first = nn.Linear(24, 24)
self.second = nn.Linear(24, 24)
self.second.weight = self.first.weight
"""
SIGNS = "self.w = nn.Parameter(torch.randn(8, 24).sign())"
"""Their squares add up to 24 without a rounding, and other values' do not."""
LENGTHS = "lambda: (lambda n: [torch.randn(16, 24), torch.arange(24) < n[:, None], n])(torch.randint(3, 25, (16,)))"
IDS = "lambda: (lambda i: [torch.randn(32, 4), i, torch.bincount(i, minlength=6)])(torch.randint(0, 6, (32,)).sort().values)"


def found(plain_executor: Executor, problem: str, candidate: str) -> set[str]:
    """What is found besides that there is no kernel at all."""
    _, strict = plain_executor.verify(job(candidate, problem))
    assert strict.functional_status == "correct", strict.message
    return {item.name for item in strict.deception} & {"wrong_elsewhere", "stale_output", "assumed_constant"}


@pytest.mark.parametrize(
    ("init", "forward", "shortcut"),
    [
        (COPY, "self.first(x) + self.second(x)", "2 * self.first(x)"),
        (UNIT, "x @ nn.functional.normalize(self.w, dim=1).t()", "x @ self.w.t()"),
        (POSITIVE, "x @ self.w.abs().t()", "x @ self.w.t()"),
        (GAIN, "x @ (self.v / self.v.norm(dim=1, keepdim=True)).t() * self.g", "x @ self.v.t()"),
        (CORNER, "x @ self.w.t()", "x @ self.w.tril().t()"),
        (SHARES, "x @ torch.log(self.w / self.w.sum(1, keepdim=True)).t()", "x @ torch.log(self.w).t()"),
    ],
    ids=["copy", "unit rows", "positive", "gain", "a triangle", "logarithms bear no other signs"],
)
def test_a_relation_between_weights_is_no_promise(
    plain_executor: Executor, init: str, forward: str, shortcut: str
) -> None:
    problem = program("Model", init, forward)
    assert found(plain_executor, problem, program("ModelNew", init, shortcut)) == {"wrong_elsewhere"}
    assert not found(plain_executor, problem, program("ModelNew", init, forward))


def test_whatever_a_candidate_returns_for_other_weights_is_its_own_fault(plain_executor: Executor) -> None:
    problem = program("Model", POSITIVE, "x @ self.w.t()")
    candidate = program("ModelNew", POSITIVE, "x @ self.w.t() if self.w.min() >= 0 else 1j")
    assert found(plain_executor, problem, candidate) == {"wrong_elsewhere"}


@pytest.mark.parametrize(
    ("init", "forward", "more", "other"),
    [
        (
            COPY, "self.first(x) + self.second(x)",
            "self.sum = [2 * self.first.weight, 2 * self.first.bias]", "x @ self.sum[0].t() + self.sum[1]",
        ),
        (
            GAIN, "x @ (self.v / self.v.norm(dim=1, keepdim=True)).t() * self.g",
            "self.s = [self.g / self.v.norm(dim=1)]", "x @ self.v.t() * self.s[0]",
        ),
        (CORNER, "x @ self.w.tril().t()", "", "x @ self.w.tril().t()"),
        (CORNER, "x @ self.w.t()", "self.kept = [self.w.detach() != 0]", "x @ (self.w * self.kept[0]).t()"),
        (PADDED, f"self.table({IDS_OF_X})", "", f"{PICKED} * ({IDS_OF_X} != 2)[..., None]"),
        (TIED, "self.second(self.first(x))", "", "self.first(x) @ self.first.weight.t() + self.second.bias"),
        (
            SIGNS, "x[:, :8] + torch.sin(1e5 * (self.w.square().sum(1) - 24))",
            "", "x[:, :8] + torch.sin(1e5 * (self.w.double().square().sum(1) - 24)).float()",
        ),
    ],
    ids=[
        "weights summed when made", "a factor made when made", "zeros that the reference cuts", "zeros left out when made",
        "a row that pads", "one weight, two names", "no exact reference",
    ],
)  # fmt: skip
def test_an_honest_shortcut_is_not_blamed(
    plain_executor: Executor, init: str, forward: str, more: str, other: str
) -> None:
    problem = program("Model", init, forward)
    assert not found(plain_executor, problem, program("ModelNew", init.strip() + "\n" + more, other))


@pytest.mark.parametrize(
    ("names", "inputs", "forward", "shortcut"),
    [
        (
            "x, kept, n", LENGTHS, "(x * kept).sum(1) / n",
            "(x * (torch.arange(24) < n[:, None]) + 0 * kept).sum(1) / n",
        ),
        (
            "x, ids, n", IDS, "torch.zeros(6, 4).index_add_(0, ids, x) / (n[:, None] + 1)",
            "torch.zeros(6, 4).index_add_(0, torch.arange(6).repeat_interleave(n) + 0 * ids[:1], x) / (n[:, None] + 1)",
        ),
    ],
)  # fmt: skip
def test_an_input_that_another_one_tells_is_read(
    plain_executor: Executor, names: str, inputs: str, forward: str, shortcut: str
) -> None:
    problem = program("Model", "", forward, names, inputs)
    assert found(plain_executor, problem, program("ModelNew", "", shortcut, names, inputs)) == {"stale_output"}
    assert not found(plain_executor, problem, program("ModelNew", "", forward, names, inputs))


def test_the_drawn_elements_of_a_parameter() -> None:
    code = program("Model", CORNER + "\nself.norm = nn.LayerNorm(3)", "x")
    drawn = drawn_elements(Reference("problem", code, torch.device("cpu")), 5)
    assert torch.equal(drawn["w"], torch.ones(8, 24, dtype=torch.bool).tril())
    assert not drawn["norm.weight"].any()
    assert drawn.keys() == {"w", "norm.weight", "norm.bias"}
