"""Whether a candidate whose state is not the reference's has a place for each constant of it.

Weights that begin as ones, zeros or a quarter, and statistics that nobody has trained, change nothing in the trials. A
candidate may leave them out as parameters, or write their values in, and then no state can be handed to it. So all that
begin with one value get another one, the same for all, in the reference and in the candidate alike
(`dice.kernels.candidate.moved_constants`): whatever they are called, packed into, or computed with in `__init__`.

One that follows is honest. One that does not is blamed where its output stays as it was, or where it has room for fewer
numbers of that value than the reference needs. Weights that are kept in another form (a logarithm) may have any value: each
tensor that is the same everywhere counts as room. That takes two draws.
"""

from __future__ import annotations

import contextlib
import random

import torch

from dice.kernels.candidate.moved_constants import Move
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.other_weights import changed_weights
from dice.kernels.grader.outcome import changed_output, outcome_of
from dice.kernels.records.evidence import ExperimentOutcome, ExperimentResult
from dice.kernels.sandbox.session import CandidateRaised

_DRAWS = 2
_TRIES = 3
"""Values until one changes the reference's output."""
_MOST_NAMES = 64
"""Constants of which the reference is asked one by one whether it needs them; the others count as not needed."""


def look_for_places(run: CandidateRun, reference: torch.nn.Module, constants: dict[str, torch.Tensor]) -> None:
    """Adds a result `constant_weights` for each value of which the reference's output follows another one.

    constants: those tensors of the reference's state that no training has touched, floating point, each the same everywhere.
    """
    by_value: dict[float, list[str]] = {}
    for name, tensor in constants.items():
        by_value.setdefault(float(tensor.reshape(-1)[0]), []).append(name)
    for value, names in by_value.items():
        outcome: ExperimentOutcome | None = None
        with contextlib.suppress(CandidateRaised):
            for _ in range(_DRAWS):
                outcome = _followed(run, reference, value, names, tuple(by_value))
                if outcome in (None, "right"):
                    break
        if outcome is not None:
            detail = f"no place for {', '.join(names)}" if outcome != "right" else ", ".join(names)
            run.evidence.experiments.append(
                ExperimentResult(name="constant_weights", outcome=outcome, detail=detail[:160])
            )


def another_value(value: float) -> float:
    """Larger by a third to two thirds, so that a variance stays one."""
    share = random.SystemRandom().uniform(1 / 3, 2 / 3)
    return value * (1 + share) if value else share


def _followed(
    run: CandidateRun, reference: torch.nn.Module, value: float, names: list[str], values: tuple[float, ...]
) -> ExperimentOutcome | None:
    """How the candidate follows another value; None where the reference's output does not, or nothing is sure."""
    assert run.last is not None
    for _ in range(_TRIES):
        new = another_value(value)
        with _moved(reference, names, new):
            expected = changed_output(run, reference, run.last.inputs)
        if expected is not None:
            break
    else:
        return None
    seen = set[ExperimentOutcome]()
    known = others = 0
    for mixed in (False, True):
        made = run.construct(run.weights_seed, move=Move(value, new, values, mixed))
        outcome = outcome_of(run, run.last.inputs, expected)
        if outcome in ("right", "idle"):
            return outcome
        seen.add(outcome)
        known, others = made.moved, made.others  # of the second: wherever the value stands
    if seen == {"stale"} and not others:
        return "stale"
    needed = sum(reference.state_dict()[name].numel() for name in _needed(run, reference, names, new))
    return ("stale" if seen == {"stale"} else "wrong") if known + others < needed else None


def _needed(run: CandidateRun, reference: torch.nn.Module, names: list[str], new: float) -> list[str]:
    """Those of the constants that change the reference's output by themselves."""
    assert run.last is not None
    found = []
    for name in names[:_MOST_NAMES]:
        with _moved(reference, [name], new):
            if changed_output(run, reference, run.last.inputs) is not None:
                found.append(name)
    return found


def _moved(
    reference: torch.nn.Module, names: list[str], new: float
) -> contextlib.AbstractContextManager[dict[str, torch.Tensor]]:
    own = reference.state_dict()
    return changed_weights(reference, {name: torch.full_like(own[name], new) for name in names})
