"""Who mixes the elements of an input, as a product or a sum does: the candidate's kernels, or somebody before them?

The launch stubs are switched off, so that all there is was made by others. One element of an input changes, then another
one that goes into the same numbers of the reference's output. Kernels that do the work are led to memory in which each of
the two changes something by itself. If every piece that changes follows both elements in the same places, they were mixed
before: by NumPy, a loop on the host, a library, another process. What the answer is written in does not matter.

Where PyTorch's own operators mix, nothing is asked: they are seen, and a part of the work may be theirs.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from dice.errors import DiceError
from dice.kernels.checks.workload import work_of
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.reference import to_device
from dice.kernels.records.evidence import ProbeOutcome, ProbeResult
from dice.kernels.sandbox.replies import Done, Mixed
from dice.kernels.sandbox.session import CandidateRaised

_FEWEST = 8
"""Elements of an input that is looked at; fewer are coefficients that the host may read."""
_MOST_BYTES = 256 << 20
"""Of all inputs."""
_MOST_INPUTS = 4
_DRAWS = 3
"""Inputs that are drawn until what is found is clear."""
_TRIES = 3

_Outcome = ProbeOutcome | Literal["unclear"] | None


def experiment_mixing(run: CandidateRun) -> None:
    """Add a ProbeResult `mixing` where there is a result: `right` as soon as the kernels are led to the elements of one
    input apart from each other, `wrong` where they are led to mixed ones only, `stale` where nothing that they are led to
    follows any input."""
    if not run.evidence.launches or run.last is None or run.reference.input_bytes > _MOST_BYTES:
        return
    if set(work_of(run.evidence.candidate_ops or {})) - {"elementwise", "movement"}:
        return
    outcome: _Outcome = None
    with run.record.phase("experiments"):
        try:
            run.ask("launching", Done, on=False)
            for _ in range(_DRAWS):
                outcome = _outcome(run)
                if outcome != "unclear":
                    break
        finally:
            if run.session.alive:
                run.ask("launching", Done, on=True)
    if outcome not in (None, "unclear"):
        run.evidence.probes.append(ProbeResult(name="mixing", outcome=outcome))


def _outcome(run: CandidateRun) -> _Outcome:
    """With inputs drawn anew; None where there is nothing to ask, and other inputs would not change that."""
    outcome: _Outcome = None
    for changed in mixed_pairs(run, run.draw_inputs(secrets.randbits(48))):
        found = _follows(run, changed)
        outcome = "wrong" if outcome == "wrong" and found == "stale" else found
        if outcome not in ("wrong", "stale"):
            break
    return outcome


def mixed_pairs(run: CandidateRun, inputs: list[Any]) -> Iterator[list[list[Any]]]:
    """For each floating-point input whose elements the reference mixes: the inputs, and the inputs with one element changed,
    and with another one that goes into some of the same numbers of the output."""
    leaves, structure = tree_flatten(inputs)
    model, seed = run.reference.model(run.weights_seed), secrets.randbits(48)

    def outputs(changed: list[Any]) -> list[torch.Tensor]:
        found = run.reference.run(model, to_device(changed, run.place.device), seed)
        return [leaf for leaf in tree_leaves(found) if isinstance(leaf, torch.Tensor)]

    def with_other(index: int, place: tuple[int, ...]) -> list[Any]:
        leaf = leaves[index].clone()
        largest = leaf.max()  # a number that the input has: another one may be no index, or no probability
        leaf[place] = leaf.min() if leaf[place] == largest else largest
        return tree_unflatten([*leaves[:index], leaf, *leaves[index + 1 :]], structure)

    before = outputs(inputs)
    chosen = [i for i, leaf in enumerate(leaves) if torch.is_tensor(leaf) and leaf.is_floating_point()]
    for index in [i for i in chosen if leaves[i].numel() >= _FEWEST][:_MOST_INPUTS]:
        for pair in _pairs(leaves[index].shape):
            first, second = (with_other(index, place) for place in pair)
            try:
                met = _meet(before, outputs(first), outputs(second))
            except DiceError:  # numbers that the reference does not take beside each other
                break
            if met:
                yield [inputs, first, second]
                break


def _pairs(shape: torch.Size) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Places half an extent apart, along the last axis first, of which one is in the first half of every axis."""
    for axis in reversed(range(len(shape))):
        if shape[axis] > 1:
            place = [secrets.randbelow(max(1, extent // 2)) for extent in shape]
            other = [*place]
            other[axis] += shape[axis] // 2
            yield tuple(place), tuple(other)


def _meet(before: list[torch.Tensor], first: list[torch.Tensor], second: list[torch.Tensor]) -> bool:
    """Whether some number of the output is another one both times."""
    return any(
        bool(((a != b) & (a != c)).any())
        for a, b, c in zip(before, first, second, strict=True)
        if a.shape == b.shape == c.shape
    )


def _follows(run: CandidateRun, changed: list[list[Any]]) -> _Outcome:
    """How the memory that kernels are led to follows the two elements. Looked at several times: pieces may be confused, but
    not so that an element that stands there by itself seems to be mixed."""
    outcome: _Outcome = "unclear"
    for _ in range(_TRIES):
        seed = secrets.randbits(48)
        for inputs in (changed[0], *changed):
            run.send("inputs", inputs)
            with contextlib.suppress(CandidateRaised):  # because its kernels did nothing
                run.forward(seed, keep=max(1, run.reference.input_bytes // 4))
            run.ask("feed", Done)
        pieces = run.ask("mixture", Mixed).pieces
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
