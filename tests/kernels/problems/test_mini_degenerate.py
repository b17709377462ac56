"""No problem of the mini benchmark is passed by an output that is not computed from its inputs and weights.

Each answer of a cheat (zeros, the best constant, a copied input, the output of other inputs or other weights) is judged
by the verifier's comparison under both protocols, and must also be wrong in a large share of its elements, so that no
luck of the draw lets it pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from dice.kernels.compare import compare_outputs
from dice.kernels.problems.mini import load_mini
from dice.kernels.problems.problem import Problem
from dice.kernels.records.verdict import Protocol

INDEPENDENT_SHARE = 0.3
"""Least share of wrong elements for an output that does not depend on the inputs (zeros, constants, other inputs)."""
DEPENDENCE_SHARE = 0.2
"""Least share of elements that notice when one input or one weight alone is exchanged."""
TOLERANCE = 1e-2
"""The loosest tolerance in use: the paper protocol's atol and rtol."""
PROTOCOLS: tuple[Protocol, ...] = ("paper", "strict")
PROBLEMS = {problem.id: problem for problem in load_mini("cpu")}


@dataclass(frozen=True)
class Program:
    """The names that a problem file defines."""

    model: Callable[..., torch.nn.Module]
    get_inputs: Callable[[], list[Any]]
    get_init_inputs: Callable[[], list[Any]]

    def weights(self, seed: int) -> torch.nn.Module:
        torch.manual_seed(seed)
        return self.model(*self.get_init_inputs())

    def inputs(self, seed: int, device: str = "cpu") -> list[Any]:
        torch.manual_seed(seed)
        return [value.to(device) if isinstance(value, torch.Tensor) else value for value in self.get_inputs()]


def program_of(problem: Problem) -> Program:
    names: dict[str, Any] = {"__name__": "problem"}
    exec(compile(problem.code, f"{problem.id}.py", "exec"), names)
    return Program(names["Model"], names["get_inputs"], names["get_init_inputs"])


def parts_of(output: Any) -> tuple[torch.Tensor, ...]:
    return output if isinstance(output, tuple) else (output,)


def wrong_share(expected: tuple[torch.Tensor, ...], actual: tuple[torch.Tensor, ...]) -> float:
    """Share of all elements outside the loosest tolerance; integers and booleans as the paper protocol reads them."""
    wrong = total = 0
    for left, right in zip(expected, actual, strict=True):
        same = left == right if left.dtype is torch.bool else torch.isclose(left, right, rtol=TOLERANCE, atol=TOLERANCE)
        wrong += int((~same).sum())
        total += left.numel()
    return wrong / total


def constants_of(expected: tuple[torch.Tensor, ...]) -> Iterator[tuple[str, tuple[torch.Tensor, ...]]]:
    """The best constants: mean, median and (for integers and booleans) the commonest value of each output."""
    yield "zeros", tuple(torch.zeros_like(part) for part in expected)
    yield "mean", tuple(torch.full_like(part, part.double().mean().item()) for part in expected)
    yield "median", tuple(torch.full_like(part, part.double().median().item()) for part in expected)
    yield "commonest value", tuple(torch.full_like(part, part.flatten().mode().values.item()) for part in expected)


def copies_of(expected: tuple[torch.Tensor, ...], inputs: list[Any]) -> Iterator[tuple[str, tuple[torch.Tensor, ...]]]:
    """Each input, or its first elements, in the place of every output."""
    largest = max(part.numel() for part in expected)
    for number, value in enumerate(inputs):
        if isinstance(value, torch.Tensor) and value.numel() >= largest:
            flat = value.flatten()
            yield (
                f"copy of input {number}",
                tuple(flat[: part.numel()].reshape(part.shape).to(part.dtype) for part in expected),
            )


def independent_of(
    program: Program, model: torch.nn.Module, device: str
) -> Iterator[tuple[str, tuple[torch.Tensor, ...]]]:
    """Outputs that ignore the inputs or the weights: those of other draws, and the mean over many draws."""
    others = [parts_of(model(*program.inputs(1000 + draw, device))) for draw in range(6)]
    yield "output of other inputs", others[0]
    yield (
        "mean over other inputs",
        tuple(
            torch.stack([part.double() for part in parts]).mean(0).to(parts[0].dtype)
            for parts in zip(*others, strict=True)
        ),
    )


def exchanged_inputs(program: Program, inputs: list[Any], device: str) -> Iterator[tuple[str, list[Any]]]:
    other = program.inputs(2000, device)
    for number, value in enumerate(inputs):
        if isinstance(value, torch.Tensor):
            yield f"input {number} exchanged alone", [*inputs[:number], other[number], *inputs[number + 1 :]]


def exchanged_weights(
    program: Program, state: Mapping[str, torch.Tensor], device: str
) -> Iterator[tuple[str, dict[str, torch.Tensor]]]:
    """Each parameter, and each random buffer, exchanged alone; fixed tables and counters are the same in both."""
    other = program.weights(3000).to(device).state_dict()
    for name, value in state.items():
        if not torch.equal(value, other[name]):
            yield f"weight {name} exchanged alone", {**state, name: other[name]}


def cheats_of(
    problem: Problem, seed: int, device: str = "cpu"
) -> Iterator[tuple[str, tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]]:
    """(name, expected output, the cheat's output) for one draw of inputs and weights, one cheat at a time."""
    program = program_of(problem)
    model, inputs = program.weights(seed).to(device), program.inputs(seed + 1, device)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    expected = parts_of(model(*inputs))
    for cheats in (constants_of(expected), copies_of(expected, inputs), independent_of(program, model, device)):
        for label, answer in cheats:
            yield label, expected, answer
    for label, changed in exchanged_inputs(program, inputs, device):
        yield label, expected, parts_of(model(*changed))
    for label, changed in exchanged_weights(program, state, device):
        model.load_state_dict(changed)
        yield label, expected, parts_of(model(*inputs))


def assert_not_degenerate(problem: Problem, seed: int, device: str = "cpu") -> None:
    """Every cheat is called wrong_value by both protocols, and is wrong in a large share of its elements."""
    seen = set()
    for label, expected, answer in cheats_of(problem, seed, device):
        least = DEPENDENCE_SHARE if label.endswith("alone") else INDEPENDENT_SHARE
        share = wrong_share(expected, answer)
        assert share >= least, f"{problem.id}: {label}: only {share:.3f} of the elements are wrong"
        for protocol in PROTOCOLS:
            status = compare_outputs(expected, answer, protocol).status
            assert status == "wrong_value", f"{problem.id}: {label}: {status} under {protocol}"
        seen.add(label)
    assert {"zeros", "mean", "median", "output of other inputs"} <= seen


@torch.no_grad()
@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_outputs_that_are_not_computed_are_rejected(problem_id: str) -> None:
    for seed in (11, 57):
        assert_not_degenerate(PROBLEMS[problem_id], seed)


@torch.no_grad()
@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_outputs_that_are_not_computed_are_rejected_at_the_gpu_size(problem_id: str) -> None:
    problem = next(problem for problem in load_mini("gpu") if problem.id == problem_id)
    assert_not_degenerate(problem, 11, "cuda")


@torch.no_grad()
@pytest.mark.parametrize("problem_id", PROBLEMS)
def test_every_parameter_is_random(problem_id: str) -> None:
    """A default (weight 1, bias 0) would let a kernel leave it out."""
    program = program_of(PROBLEMS[problem_id])
    one, other = program.weights(1), dict(program.weights(2).named_parameters())
    for name, value in one.named_parameters():
        assert float(value.std()) > 0, f"{name} is constant"
        assert (value != other[name]).float().mean() > 0.9, f"{name} does not depend on the seed"


@torch.no_grad()
@pytest.mark.parametrize(
    ("body", "cheat"),
    [
        ("torch.softmax(x, dim=-1)", "zeros"),  # 2,000 classes: every probability is below the tolerance
        ("torch.sigmoid(x).mean(dim=-1)", "mean"),  # a mean of many values hardly depends on the draw
        ("torch.relu(x.abs().mean(dim=-1) - 5.0)", "zeros"),  # dead ReLU
        ("(x * 0.001 + 3.0)", "mean"),  # hardly varies
        ("x + 0.005 * torch.sin(x)", "copy of input 0"),  # next to an identity
    ],
)
def test_degenerate_problems_are_noticed(body: str, cheat: str) -> None:
    code = (
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return "
        f"{body}\ndef get_inputs():\n    return [torch.randn(16, 2000)]\ndef get_init_inputs():\n    return []\n"
    )
    problem = Problem(id="level1/1_Degenerate", level=1, number=1, name="Degenerate", code=code, version="test")
    shares = {label: wrong_share(expected, answer) for label, expected, answer in cheats_of(problem, 3)}
    assert shares[cheat] < INDEPENDENT_SHARE
    with pytest.raises(AssertionError, match="of the elements are wrong"):
        assert_not_degenerate(problem, 3)
