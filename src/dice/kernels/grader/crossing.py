"""Who chooses among the elements of an input, or mixes them, between a candidate's launches: the host?

The largest of a row, its place, a median, a vote: a kernel hands the elements over, Python compares them, a second kernel
writes what was chosen. No element but the chosen one shows in that, so `dice.kernels.grader.mixing`, which changes two single
elements, sees it seldom. Here many elements change at once, and nothing that a kernel or an operator of PyTorch's has mixed
follows (`dice.kernels.candidate.crossing`). What follows two sets of elements all the same was made by the host.

The other inputs lie above those that they replace, and then below them: whatever is chosen becomes another one.
"""

from __future__ import annotations

import secrets
from typing import Any, Literal

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from dice.kernels.candidate.crossing import Role
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.records.evidence import ExperimentResult
from dice.kernels.sandbox.replies import Crossed, Done, Repeated

_FEWEST = 64
"""Elements of an input that is looked at: fewer are coefficients that the host may read."""
_MOST_BYTES = 64 << 20
"""Of all inputs."""
_SHARE = 0.125
"""Of the elements that are in each of two sets: few, since the host may read two numbers."""
_TIMES = 3
"""Pairs of sets that must show it."""
_REPEATS = 8
"""More base forwards before anything is blamed: sums of atomics, in memory that the candidate keeps, vary of themselves."""
_CALLS_BEFORE = 8
"""Calls with the base inputs before each recorded forward. So what a candidate keeps of earlier calls, as in a ring of
outputs, is the same in all recorded forwards."""
_SECONDS_BEFORE = 0.5
"""Limit for these calls."""

Direction = Literal["up", "down"]


def experiment_crossing(run: CandidateRun) -> None:
    """Add a result `crossing` where there is a result: `wrong` where the host has made something of many elements."""
    if not run.evidence.launches or run.last is None or run.reference.input_bytes > _MOST_BYTES:
        return
    if run.place.backend != "cpu" or not run.counts_launches:
        return
    inputs = run.draw_inputs(secrets.randbits(48))
    base = turned(inputs, None)
    if base is None:
        return
    with run.record.phase("experiments"):
        wrong = any(_made_by_host(run, base, turned(inputs, direction)) for direction in ("up", "down"))
    run.evidence.experiments.append(ExperimentResult(name="crossing", outcome="wrong" if wrong else "right"))


def turned(inputs: list[Any], direction: Direction | None) -> list[Any] | None:
    """Inputs whose elements are drawn anew from their own values: from the middle half of them, or from the quarter above or
    below it. None where no input has enough elements."""
    leaves, structure = tree_flatten(inputs)
    found = [_from(leaf, direction) if _is_looked_at(leaf) else leaf for leaf in leaves]
    return tree_unflatten(found, structure) if any(map(_is_looked_at, leaves)) else None


def _is_looked_at(leaf: Any) -> bool:
    return torch.is_tensor(leaf) and leaf.is_floating_point() and leaf.numel() >= _FEWEST


def _from(leaf: torch.Tensor, direction: Direction | None) -> torch.Tensor:
    values, places = leaf.flatten().double().sort()
    quarter = leaf.numel() // 4
    part = {None: slice(quarter, -quarter), "up": slice(-quarter, None), "down": slice(quarter)}[direction]
    generator = torch.Generator().manual_seed(secrets.randbits(48))
    drawn = values[part][torch.randint(len(values[part]), (leaf.numel(),), generator=generator)].to(leaf.dtype)
    if direction is None:  # what is in the middle stays
        drawn[places[part]] = leaf.flatten()[places[part]]
    return drawn.reshape(leaf.shape)


def _made_by_host(run: CandidateRun, base: list[Any], other: list[Any] | None) -> bool:
    seed = secrets.randbits(48)

    def forward(role: Role, inputs: list[Any], places: int = 0) -> None:
        run.send("inputs", base)
        run.ask("repeat", Repeated, slot=0, calls=_CALLS_BEFORE, budget_s=_SECONDS_BEFORE, anew=run.inputs_change)
        run.send("inputs", inputs)
        run.ask("cross", Done, slot=0, seed=seed, role=role, share=_SHARE, places=places)

    def made(*roles: Role) -> int:
        return run.ask("crossed", Crossed, roles=[*roles]).bytes

    def shows() -> bool:
        """Whether it shows with two sets of elements, drawn anew."""
        places = secrets.randbits(48)
        forward("first", base, places)
        forward("second", base, places)
        forward("again", base)  # what a counter of calls has changed since the base is other now
        return made("first", "second") > 0

    assert other is not None
    try:
        forward("base", base)
        forward("again", base)
        forward("other", other)
        if not (made("other") and shows()):
            return False
        for _ in range(_REPEATS):
            forward("again", base)
        return made("first", "second") > 0 and all(shows() for _ in range(_TIMES - 1))
    finally:
        if run.session.alive:
            run.ask("uncross", Done)
