"""Does a program answer an exam problem? It is run on the exam's own inputs and weights, and the outputs are compared.

As in the verifier, the exam's constructor arguments and weights are given to the program where it accepts them. Both compute
in fp64 where they can.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch.utils._pytree import tree_map

from dice.data.leakage.operators import kind, kinds_of
from dice.data.leakage.program import Failed, Program, contained, elements, run, shrunk, without_data
from dice.data.leakage.trace import Traced

LARGEST = 1 << 17
"""Input elements up to which an exam is run as it is; a larger one is run on smaller inputs, if it accepts them."""
SHRUNK = 1 << 14
"""Input elements of such an exam at most: every training program with inputs of its kinds is run on them."""
LONGEST_SIZES = (48, 24, 12, 6)
"""Sizes of a large exam are halved until they are at most the first of these that makes its inputs small."""
TOLERANCE = 1e-5
"""Largest difference of equal outputs, relative to the largest output."""


def in_dtype(value: Any, dtype: torch.dtype) -> Any:
    """A nested value with its floating-point tensors in `dtype`."""
    return tree_map(lambda leaf: leaf.to(dtype) if torch.is_tensor(leaf) and leaf.is_floating_point() else leaf, value)


@dataclass
class Exam:
    """One exam problem, run once."""

    arguments: list[Any]
    inputs: list[Any]
    weights: list[torch.Tensor]
    """Parameters and buffers in the order in which they are registered."""
    outputs: list[Any]

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of the inputs."""
        return kinds_of(self.inputs)

    @cached_property
    def shapes(self) -> tuple[torch.Size, ...] | None:
        """Shapes of the inputs; None where one is no tensor of real numbers, so that a program may refuse its values."""
        real = all(torch.is_tensor(one) and one.is_floating_point() for one in self.inputs)
        return tuple(one.shape for one in self.inputs) if real else None

    @cached_property
    def bounds(self) -> list[float]:
        """For each output the largest difference of an equal one."""
        return [_bound(one) if torch.is_tensor(one) else 0.0 for one in self.outputs]

    @cached_property
    def inputs_name(self) -> str:
        """Equal for equal inputs; problems of a suite often share theirs."""
        parts = [(tuple(x.shape), x.numpy().tobytes()) if torch.is_tensor(x) else x for x in self.inputs]
        return hashlib.sha256(repr(parts).encode()).hexdigest()


@contained()
def exam_of(code: str) -> Exam:
    """The problem's inputs, weights and outputs. Raises Failed where it cannot be run, or its outputs say nothing."""
    program = Program(_small_enough(code))
    inputs = program.inputs()
    arguments = program.arguments()
    model = program.model(arguments)
    weights = [one.detach().clone() for one in _state(model)]
    wide = in_dtype(inputs, torch.float64)
    exam = Exam(arguments, wide, weights, _run_wide(model, wide))
    if _says_nothing(exam):
        centred = [_centred(value) for value in exam.inputs]
        exam = Exam(arguments, centred, weights, _run_wide(model, centred))
        if _says_nothing(exam):
            raise Failed("its outputs are constant or one of its inputs")
    return exam


def _small_enough(code: str) -> str:
    """The program itself, or with the largest of LONGEST_SIZES that makes its inputs small. Raises Failed."""
    if _input_elements(code) <= LARGEST:
        return code
    for longest in LONGEST_SIZES:
        smaller = shrunk(code, longest)
        if _input_elements(smaller) <= SHRUNK:
            return smaller
    raise Failed(f"more than {SHRUNK} input elements with sizes of {LONGEST_SIZES[-1]}")


def _input_elements(code: str) -> int:
    """Elements of the program's inputs; counted on tensors without data where that works, because inputs of gigabytes take
    seconds to draw."""
    with contextlib.suppress(Failed), without_data():
        return elements(Program(code).inputs())
    return elements(Program(code).inputs())


def _run_wide(model: torch.nn.Module, inputs: list[Any]) -> list[Any]:
    """The outputs in fp64, or in float32 where that may be why it fails: a program may name float32 itself. Raises Failed."""
    try:
        return run(model.double(), inputs)
    except Failed as failed:
        if not _may_be_of_types(failed.error):
            raise
        return run(model.float(), in_dtype(inputs, torch.float32))


def _may_be_of_types(error: BaseException | None) -> bool:
    """Whether a program may have failed because it was given fp64. PyTorch's errors then name types; most are of shapes."""
    if not isinstance(error, RuntimeError | IndexError):
        return True
    return any(word in str(error).lower() for word in ("type", "float", "double"))


def _says_nothing(exam: Exam) -> bool:
    """Whether a program could give these outputs without computing: all constant, not finite, or inputs."""
    return all(
        not torch.is_tensor(one)
        or not bool(torch.isfinite(one.double()).any())
        or (one.numel() > 1 and bool((one == one.flatten()[0]).all()))
        or any(
            torch.is_tensor(given) and one.shape == given.shape and bool((one == given).all()) for given in exam.inputs
        )
        for one in exam.outputs
    )


def _centred(value: Any) -> Any:
    """An input with negative and positive values."""
    return (value - value.mean()) * 3 if torch.is_tensor(value) and value.is_floating_point() else value


@contained()
def answered(code: str, traced: Traced, exams: Iterable[tuple[str, Exam]]) -> str | None:
    """Id of the first of the problems whose outputs the program gives. `traced`: what is known of it. Raises Failed."""
    candidate = _Candidate(code, traced)
    return next((name for name, exam in exams if candidate.answers(exam)), None)


class _Candidate:
    """A program that may answer exams. Most fit few of them: how they fail is what this class makes cheap."""

    def __init__(self, code: str, traced: Traced) -> None:
        self.program = Program(code)
        self.arguments = self.program.arguments()
        self.kinds = traced.kinds
        self.has_state = traced.weights > 0
        self.fits = traced.weights <= LARGEST
        """Whether its weights are few enough to be an exam's."""
        self.given: dict[str, list[Any] | None] = {}
        """Inputs -> outputs, of a program without weights and constructor arguments."""
        self.refused: set[tuple[torch.Size, ...]] = set()
        """Shapes of inputs that the model with the program's own arguments does not take."""

    def answers(self, exam: Exam) -> bool:
        """Whether the program gives the exam's outputs on its inputs and weights."""
        if exam.kinds != self.kinds:
            return False
        return any(found is not None and gives(found, exam) for found in self._outputs(exam))

    def _outputs(self, exam: Exam) -> Iterator[list[Any] | None]:
        """The outputs with the exam's constructor arguments, and with the program's own; both with the exam's weights."""
        if exam.arguments and len(exam.arguments) == len(self.arguments):
            with contextlib.suppress(Failed):
                model = self.program.model(exam.arguments)
                yield _run_wide(_weighted(model, list(_state(model)), exam.weights), exam.inputs)
        if not (self.has_state or self.arguments):
            if exam.inputs_name not in self.given:
                self.given[exam.inputs_name] = self._own_outputs(exam)
            yield self.given[exam.inputs_name]
        elif self.fits:
            yield self._own_outputs(exam)

    def _own_outputs(self, exam: Exam) -> list[Any] | None:
        """The outputs with the program's own arguments; None where it does not take the exam's inputs."""
        if exam.shapes in self.refused:
            return None
        try:
            return _run_wide(_weighted(self.model, self.weights, exam.weights), exam.inputs)
        except Failed:
            if exam.shapes is not None:
                self.refused.add(exam.shapes)
            return None

    @cached_property
    def model(self) -> torch.nn.Module:
        """The model with the program's own arguments."""
        return self.program.model(self.arguments)

    @cached_property
    def weights(self) -> list[torch.Tensor]:
        """The weights with which that model is made."""
        return [own.detach().clone() for own in _state(self.model)]


def _state(model: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Parameters and buffers in the order in which they are registered."""
    yield from model.parameters()
    yield from model.buffers()


def _weighted(model: torch.nn.Module, own: Sequence[torch.Tensor], given: Sequence[torch.Tensor]) -> torch.nn.Module:
    """The model with copies of its `own` weights, each replaced by the first unused one of `given` that has its shape."""
    if not own:
        return model
    left = list(given)
    for weight, first in zip(_state(model), own, strict=True):
        place = next((n for n, one in enumerate(left) if one.shape == first.shape), None)
        weight.data = (first if place is None else left.pop(place)).to(first.dtype, copy=True)
    return model


def gives(found: Sequence[Any], exam: Exam) -> bool:
    """Whether output leaves are the exam's in kind, shape and value."""
    if len(found) != len(exam.outputs):
        return False
    return all(map(_same, found, exam.outputs, exam.bounds))


def _same(one: Any, other: Any, bound: float) -> bool:
    if not torch.is_tensor(one) or not torch.is_tensor(other):
        return type(one) is type(other) and one == other
    if one.shape != other.shape or kind(one) != kind(other):
        return False
    return torch.allclose(one.double(), other.double(), rtol=TOLERANCE, atol=bound, equal_nan=True)


def _bound(output: torch.Tensor) -> float:
    """The tolerance at an output's largest finite value; at one where none is finite."""
    finite = output.double()[torch.isfinite(output)]
    return TOLERANCE * (float(finite.abs().max()) if len(finite) else 1.0)
