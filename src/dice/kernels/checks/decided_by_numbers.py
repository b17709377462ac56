"""Choices of forward between its ways to work by numbers of an input, however they are read and whoever made them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set

from dice.kernels.checks.choices import Choice, Work, choices, raises, work_of
from dice.kernels.checks.extensions import extension_names
from dice.kernels.checks.inputs import count_inputs
from dice.kernels.checks.numbers_read import Besides, NumbersRead, numbers_read, tensors_given
from dice.kernels.checks.python_source import PythonSource
from dice.kernels.checks.rings import is_memory
from dice.kernels.checks.selections import has_selections
from dice.kernels.checks.sniffing import returns_zeros

_WHOLE = ast.If | ast.IfExp | ast.Match | ast.Subscript
"""Choices of which each outcome is written out."""


def choices_by_numbers(
    source: PythonSource,
    reference: PythonSource | None,
    readers: Set[str] = frozenset(),
    writers: Set[str] = frozenset(),
) -> Iterator[ast.AST]:
    """Choices between kernels and PyTorch by numbers of an input, by how many of them are selected, and by what a kernel has
    made of them; those by numbers that are no whole ones between kernels and others, or nothing at all, too. readers:
    functions of C++ that read a tensor's numbers and return one. writers: those that return tensors, or nothing."""
    tensors = tensors_given(source, reference)
    inexact = tensors - count_inputs(source, reference)
    counted = reference is None or not has_selections(reference)
    any_numbers = numbers_read(source, tensors, readers, Besides(sizes=counted))
    amounts = numbers_read(source, inexact, readers, Besides(patterns=False))
    floats = numbers_read(source, inexact, readers)
    of_kernels = numbers_read(source, tensors, readers, Besides(kernels=frozenset(writers), sizes=counted))
    work = work_of(source)
    for choice in choices(source, source.in_forward):
        if (
            (_is_by(any_numbers, choice) and work.are_both(choice.outcomes))
            or (_is_by(floats, choice) and _spares_kernels(source, choice))
            or (_is_by(amounts, choice) and _launches_by(source, choice))
            or (_is_by(of_kernels, choice) and _gives_up(source, choice, of_kernels))
        ):
            yield choice.node


def _is_by(numbers: NumbersRead, choice: Choice) -> bool:
    return any(map(numbers.by, choice.conditions))


def _spares_kernels(source: PythonSource, choice: Choice) -> bool:
    """Whether one way launches kernels and another one does nothing, but for zeros that it returns."""
    if not isinstance(choice.node, ast.If | ast.IfExp | ast.Match) or returns_zeros(source, choice.node):
        return False
    ways = work_of(source).ways(choice.outcomes)
    return Work() in ways and any(way.launches for way in ways)


def _launches_by(source: PythonSource, choice: Choice) -> bool:
    """Whether each way launches kernels, and each gives an answer of its own: `zeros(x) if ... else relu(x)`. A launch more,
    before what is the same for all, is no answer."""
    if not isinstance(choice.node, _WHOLE) or choice.repeats or raises(choice.outcomes.blocks[0]):
        return False
    work, blocks = work_of(source), choice.outcomes.blocks
    if all(work.of(block).launches for block in blocks):
        return True
    ways = work.ways(choice.outcomes)
    answers = any(_leaves(block) and work.of(block).launches for block in blocks)
    return answers and bool(ways) and all(way.launches for way in ways)


def _gives_up(source: PythonSource, choice: Choice, of_kernels: NumbersRead) -> bool:
    """Whether one outcome computes with PyTorch alone, from nothing that a kernel has made, and another one does not: it
    gives what the kernel made."""
    work = work_of(source)
    ways = work.ways(choice.outcomes)
    if not isinstance(choice.node, _WHOLE) or Work(computes=True) not in ways or len(ways) == 1:
        return False
    made = source.mentioning(_kernel_results(source))
    after = [*source.after(choice.outcomes.behind)] if choice.outcomes.behind is not None else []
    whole = [[*block, *([] if _leaves(block) else after)] for block in choice.outcomes.blocks]
    alone = (work.of(way) == Work(computes=True) and made.isdisjoint(way) for way in whole)
    return any(alone) and not all(map(made.isdisjoint, whole))


def _leaves(block: Sequence[ast.AST]) -> bool:
    return any(isinstance(node, ast.Return | ast.Raise) for node in block)


def _kernel_results(source: PythonSource) -> Set[str]:
    """Variables that hold what a call of an extension gives, or that it is given to write to."""
    of_extensions = source.mentioning(extension_names(source))
    found: set[str] = set()
    for node in source.in_forward:
        match node:
            case ast.Assign(targets=targets, value=value) if value in of_extensions or is_memory(source, value):
                found.update(target.id for target in targets if isinstance(target, ast.Name))
    return found
