"""Who mixes the elements of an input, as a product or a sum does: the candidate's kernels, or somebody before them?

The launch stubs are switched off, so that all there is was made by others. One element of an input changes, then another
one that goes into the same numbers of the reference's output. Kernels that do the work are led to memory in which each of
the two changes something by itself. If every piece that changes follows both elements in the same places, they were mixed
before: by NumPy, a loop on the host, a library, another process. What the answer is written in does not matter.

Kernels may be led to the input beside an answer that is there already. So it is also counted how many numbers follow both
elements. If there are as many as the answer needs, whatever the elements and the inputs are, somebody has mixed them.

A kernel may only hand the elements on, in a code, to somebody who mixes them. So where no operator of PyTorch's mixes, the
elements change once more with the stubs on: numbers that follow both before a launch, while no earlier launch has left such
numbers, were mixed in between.

Where PyTorch's own operators mix as the reference's do, nothing is asked: they are seen, and a part of the work may be
theirs. Where they mix by another kind (a product with a triangle for running sums), no part of the reference's is left.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Sequence, Set
from typing import Any, Literal

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from dice.errors import DiceError
from dice.kernels.candidate.joins import ADDING, JOINING
from dice.kernels.checks.workload import NO_MIXING, work_of
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.reference import to_device
from dice.kernels.records.evidence import ExperimentOutcome, ExperimentResult, OpUse
from dice.kernels.sandbox import values
from dice.kernels.sandbox.leaves import tensors_of
from dice.kernels.sandbox.replies import Done, Mixed
from dice.kernels.sandbox.session import CandidateRaised

_FEWEST = 8
"""Elements of an input that is looked at; fewer are coefficients that the host may read. Also places along an axis."""
_MOST_BYTES = 256 << 20
"""Of all inputs."""
_MOST_INPUTS = 4
_DRAWS = 3
"""Times that inputs are drawn, at most, until the same is found twice."""
_MOST_DRAWS = 8
"""The same, counted with draws that tell nothing: a coarse code may not show that an element changes."""
_TRIES = 3
"""Looks at two elements, and pairs of elements along one axis."""
_NEAR_PLACES = 16
_NEAR_SHARE = 1 / 64
"""Of an axis; near elements are no further apart than the greater one of the two. A block that adds up a part of a row mixes
them; the host may add what a few blocks leave."""
_LOOKS = 2
"""Looks at two elements, with kernels, all of which must find them mixed between launches."""
_WORDS_PER_NUMBER = (0.25, 8)
"""Words of four bytes for a number of the output, at least (bytes) and at most (text)."""
_STRAY = 8
"""Words; memory that nobody wrote for the kernels has fewer that follow both elements, a sum of the inputs say."""
BESIDE = "beside the inputs, kernels are led to numbers that depend on many of their elements"

_MOST_ROOM = 8 << 20
"""Bytes behind a pointer that are looked at on a GPU with the stubs on; its allocator's segments are a few MiB long."""

_WIDE_ROOM = 16 << 20
"""The same on the CPU back end, where a launch leaves more than is looked at otherwise."""
_MOST_JOINED = 0.95
"""Share of the elements that the reference reduces. Operators of PyTorch's that join so many do the whole reduction, and not
only its end."""

_Outcome = ExperimentOutcome | Literal["unclear"] | None
_Distance = Literal["half", "any", "near"]
"""How far two elements are apart: half an extent, anything but that, or little, beside the extent."""


def experiment_mixing(run: CandidateRun) -> None:
    """Add a result `mixing` where there is a result: `right` as soon as the kernels are led to the elements of one
    input apart from each other, `wrong` where they are led to mixed ones only, or to an answer's worth of them beside the
    inputs, `stale` where nothing that they are led to follows any input. Where it is `right`, and no operator of PyTorch's
    mixes, add one `mixing_between`: `wrong` where elements are mixed between launches."""
    if not run.evidence.launches or run.last is None or run.reference.input_bytes > _MOST_BYTES:
        return
    mine, theirs = (work_of(ops or {}) for ops in (run.evidence.candidate_ops, run.evidence.reference_ops))
    if (mine.keys() & theirs.keys()) - NO_MIXING:
        return
    outcome: _Outcome = None
    detail = ""
    with run.record.phase("experiments"):
        try:
            run.ask("launching", Done, on=False)
            outcome = _confirmed(run)
            if outcome == "right" and not mine.keys() - NO_MIXING and all(_answer_beside(run) for _ in range(_DRAWS)):
                outcome, detail = "wrong", BESIDE
        finally:
            if run.session.alive:
                run.ask("launching", Done, on=True)
    if outcome not in (None, "unclear"):
        run.evidence.experiments.append(ExperimentResult(name="mixing", outcome=outcome, detail=detail))
    if outcome == "right" and not mine.keys() - NO_MIXING:
        with run.record.phase("experiments"):
            between = all(_mixed_between(run) for _ in range(_DRAWS))
        run.evidence.experiments.append(
            ExperimentResult(name="mixing_between", outcome="wrong" if between else "right")
        )


def _confirmed(run: CandidateRun) -> _Outcome:
    """With inputs drawn several times. What condemns is seen twice: memory that nobody wrote may seem to follow the elements
    once."""
    seen: list[_Outcome] = []
    for _ in range(_MOST_DRAWS):
        outcome = _outcome(run)
        if outcome in (None, "right") or (outcome != "unclear" and outcome in seen):
            return outcome
        seen.append(outcome)
        if len(seen) - seen.count("unclear") == _DRAWS:
            break
    return "unclear"


def _outcome(run: CandidateRun) -> _Outcome:
    """With inputs drawn anew; None where there is nothing to ask, and other inputs would not change that."""
    outcome: _Outcome = None
    for changed, _ in mixed_pairs(run, run.draw_inputs(secrets.randbits(48))):
        found = _follows(run, changed)
        outcome = "wrong" if outcome == "wrong" and found == "stale" else found
        if outcome not in ("wrong", "stale"):
            break
    return outcome


def _answer_beside(run: CandidateRun) -> bool:
    """Whether kernels are led to numbers that follow two elements of an input, as many as the output has, with inputs and
    elements drawn anew. The elements are never half an extent apart: where PyTorch adds two halves, nothing is mixed yet."""
    if set(run.evidence.candidate_ops or {}) & ADDING:
        return False
    for changed, met in mixed_pairs(run, run.draw_inputs(secrets.randbits(48)), "any"):
        pieces = _pieces(run, changed, _any_order())  # one word may be enough, and memory has words of earlier calls
        if pieces is not None and is_worth(pieces["shared"], met):
            return True
    return False


def _mixed_between(run: CandidateRun) -> bool:
    """Whether two elements of an input, drawn anew, are mixed before a launch and by no launch before it. What PyTorch joins
    may be parts that kernels mixed, and the host may add those of a few blocks: so the two elements are near each other."""
    if not run.counts_launches:
        return False
    joined = _joined(run)
    for changed, _ in mixed_pairs(run, run.draw_inputs(secrets.randbits(48)), "near"):
        looks = (_look_with_kernels(run, changed) for _ in range(_LOOKS))
        if all((look.staged or 0) > (joined if look.joined else 0) for look in looks):
            return True
    return False


def _joined(run: CandidateRun) -> int:
    """Elements that PyTorch may join which kernels have mixed in parts; 0 where that is all of the reference's reduction,
    as in a tree of additions."""

    def elements(operators: dict[str, OpUse] | None, names: Set[str]) -> int:
        return sum(use.elements for name, use in (operators or {}).items() if name in names)

    mine, theirs = run.evidence.candidate_ops, run.evidence.reference_ops
    work = work_of(theirs or {})
    only_reduces = work.keys() - NO_MIXING == {"reduction"}
    if only_reduces and elements(mine, JOINING) - elements(theirs, JOINING) >= _MOST_JOINED * work["reduction"]:
        return 0
    return elements(mine, JOINING | ADDING)


def _look_with_kernels(run: CandidateRun, changed: list[list[Any]]) -> Mixed:
    """A look with kernels. Where a launch left more than was looked at, a second one with more room; not on a GPU, where what
    lies behind is no part of a tensor."""
    found = _look(run, changed, _room(run), _any_order())
    if found.staged is None and run.place.backend == "cpu":
        return _look(run, changed, max(_room(run), _WIDE_ROOM), _any_order())
    return found


def _any_order() -> list[int]:
    """What memory holds of earlier calls, freed memory too, follows their inputs: not so in any order of the calls."""
    return secrets.SystemRandom().sample(range(4), 4)


def _room(run: CandidateRun) -> int:
    """Size of an answer for which forward keeps as much memory behind a pointer as launches may leave there."""
    assert run.last is not None
    answer = values.lay_out(run.last.expected)[2]
    return max(answer, run.reference.input_bytes // 4, _MOST_ROOM if run.place.backend == "cuda" else 1)


def is_worth(words: int, numbers: int) -> bool:
    """Whether so many words that follow both elements can be so many numbers of the output, and no stray ones."""
    least, most = _WORDS_PER_NUMBER
    return max(min(_STRAY, numbers), least * numbers) <= words <= most * numbers


def mixed_pairs(
    run: CandidateRun, inputs: list[Any], distance: _Distance = "half"
) -> Iterator[tuple[list[list[Any]], int]]:
    """For each floating-point input whose elements the reference mixes: the inputs, and the inputs with one element changed,
    and with another one that goes into some of the same numbers of the output; and how many these are."""
    leaves, structure = tree_flatten(inputs)
    model, seed = run.reference.model(run.weights_seed), secrets.randbits(48)

    def outputs(changed: list[Any]) -> list[torch.Tensor]:
        found = run.reference.run(model, to_device(changed, run.place.device), seed)
        return tensors_of(found)

    def with_other(index: int, place: tuple[int, ...], second: bool) -> list[Any]:
        leaf = leaves[index].clone()
        largest = leaf.max()  # a number that the input has: another one may be no index, or no probability
        if second and distance != "half" and bool((leaf < largest).any()):
            largest = leaf[leaf < largest].max()
        leaf[place] = leaf.min() if leaf[place] == largest else largest
        return tree_unflatten([*leaves[:index], leaf, *leaves[index + 1 :]], structure)

    before = outputs(inputs)
    chosen = [i for i, leaf in enumerate(leaves) if torch.is_tensor(leaf) and leaf.is_floating_point()]
    for index in [i for i in chosen if leaves[i].numel() >= _FEWEST][:_MOST_INPUTS]:
        for pair in _pairs(leaves[index].shape, distance):
            first, second = (with_other(index, place, bool(which)) for which, place in enumerate(pair))
            try:
                met = _meet(before, outputs(first), outputs(second), apart=distance != "half")
            except DiceError:  # numbers that the reference does not take beside each other
                break
            if met:
                yield [inputs, first, second], met
                break


def _pairs(shape: torch.Size, distance: _Distance) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Places along one axis, the last axis first, of which one is in the first half of every axis. They are half an extent
    apart, and at last neighbours, which a window of a convolution holds together; or any or little distance apart, then two
    as windows need it, on an axis of at least eight places."""
    for axis in reversed(range(len(shape))):
        extent = shape[axis]
        if extent < (2 if distance == "half" else _FEWEST):
            continue
        for again in range(1 if distance == "half" else _TRIES):
            place = [secrets.randbelow(max(1, each // 2)) for each in shape]
            other = [*place]
            other[axis] += 2 if again == _TRIES - 1 else _step(extent, place[axis], distance)
            yield tuple(place), tuple(other)
    wide = [axis for axis in reversed(range(len(shape))) if shape[axis] > 2] if distance == "half" else []
    for axis in [*wide[:2], *wide[:2]]:  # twice, since windows may end between two neighbours
        place = [secrets.randbelow(max(1, each // 2)) for each in shape]
        other = [*place]
        other[axis] += 1
        yield tuple(place), tuple(other)


def _step(extent: int, place: int, distance: _Distance) -> int:
    """From a place in the first half of an axis to another one."""
    if distance == "half":
        return extent // 2
    most = max(_NEAR_PLACES, int(_NEAR_SHARE * extent)) if distance == "near" else extent
    return secrets.choice([step for step in range(2, min(extent - place, most + 1)) if 2 * step != extent])


def _meet(before: list[torch.Tensor], first: list[torch.Tensor], second: list[torch.Tensor], apart: bool) -> int:
    """How many numbers of the output are other ones both times; `apart`: and not the same ones."""
    return sum(
        int(((a != b) & (a != c) & ((b != c) | (not apart))).sum())
        for a, b, c in zip(before, first, second, strict=True)
        if a.shape == b.shape == c.shape
    )


def _follows(run: CandidateRun, changed: list[list[Any]]) -> _Outcome:
    """How the memory that kernels are led to follows the two elements. Looked at several times: pieces may be confused, but
    not so that an element that stands there by itself seems to be mixed."""
    outcome: _Outcome = "unclear"
    for _ in range(_TRIES):
        pieces = _pieces(run, changed)
        if pieces is None:
            return None
        if pieces["apart"]:
            outcome = "right"
        elif pieces["sided"]:
            return "unclear"
        elif pieces["mixed"]:
            return "wrong"
        elif not pieces["lost"]:
            outcome = "stale" if outcome == "unclear" else outcome
    return outcome


def _pieces(run: CandidateRun, changed: list[list[Any]], order: Sequence[int] = range(4)) -> dict[Any, int] | None:
    """How the memory that kernels are led to follows the two elements, once; None where they are led to none."""
    return _look(run, changed, max(1, run.reference.input_bytes // 4), list(order)).pieces


def _look(run: CandidateRun, changed: list[list[Any]], keep: int, order: list[int]) -> Mixed:
    """What is found in the memory that kernels are led to in four forwards: two of the same inputs, then one of each of the
    others, in an order of places among these. Before each one on a GPU all tensors go: so the new ones have the same
    neighbours each time, which are copied with them."""
    seed = secrets.randbits(48)
    for place in order:
        if run.place.backend == "cuda":
            run.ask("forget", Done)
        run.send("inputs", [changed[0], *changed][place])
        with contextlib.suppress(CandidateRaised):  # because its kernels did nothing
            run.forward(seed, keep=keep)
        run.ask("feed", Done)
    return run.ask("mixture", Mixed, order=order)
