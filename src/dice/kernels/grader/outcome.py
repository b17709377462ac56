"""Changed values for the reference and the candidate alike: what the one gives then, and whether the other follows."""

from __future__ import annotations

import secrets
from typing import Any

import torch

from dice.errors import DiceError
from dice.kernels.compare import compare_outputs, computable
from dice.kernels.grader.agreement import expected_outputs
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.closeness import agree
from dice.kernels.grader.consent import is_taken_on_cpu
from dice.kernels.grader.reference import Trial, to_device
from dice.kernels.records.evidence import ExperimentOutcome
from dice.kernels.sandbox.leaves import floats_of


def new_trial(run: CandidateRun) -> Trial:
    """New inputs of the problem, and what the reference gives for them."""
    inputs, seed = run.draw_inputs(secrets.randbits(48)), secrets.randbits(48)
    return Trial(inputs, seed, expected_outputs(run, inputs, seed))


def accepted(run: CandidateRun, inputs: list[Any]) -> bool:
    """Whether the reference takes other integers. Asked on the CPU: on a GPU an index beyond a table ends the process."""
    assert run.last is not None
    return is_taken_on_cpu(run, inputs, run.last.forward_seed)


def changed_output(run: CandidateRun, model: torch.nn.Module, inputs: list[Any]) -> Any:
    """The reference's outputs in the changed state; None where it cannot be called so, or hardly changes."""
    assert run.last is not None
    try:
        expected = run.reference.run(model, to_device(inputs, run.place.device), run.last.forward_seed)
    except DiceError:
        return None
    before = run.last.expected
    return None if not _finite(expected) or agree(before, expected) or agree(expected, before) else expected


def outcome_of(run: CandidateRun, inputs: list[Any], expected: Any) -> ExperimentOutcome:
    """Call the candidate: did it follow, with kernels or without, stay what it was, or neither?"""
    assert run.last is not None
    run.send("inputs", inputs)
    actual = run.fetch(run.forward(run.last.forward_seed), expected)
    if agree(expected, actual):
        return "idle" if run.is_idle() else "right"
    if agree(run.last.expected, actual):
        return "stale"
    return "right" if compare_outputs(expected, actual, "paper").ok else "wrong"


def _finite(outputs: Any) -> bool:
    floats = floats_of(outputs)
    return all(bool(computable(leaf).isfinite().all()) for leaf in floats)
