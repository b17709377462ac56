"""Comparison with the reference, which may be computed again: without TF32, or in fp64 (`dice.kernels.compare`)."""

from __future__ import annotations

import contextlib
from typing import Any

from dice.errors import DiceError
from dice.kernels.compare import Comparison, compare_outputs
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.reference import Trial, exact_products, like, to_device
from dice.kernels.records.verdict import Protocol

_MOST_BYTES = 1 << 30
"""Of inputs: above it fp64 takes too much memory."""
WITHOUT_TF32 = "strict: agrees with the reference computed without TF32, not with PyTorch's default"


def expected_outputs(run: CandidateRun, inputs: list[Any], seed: int) -> Any:
    """The reference's outputs, on a copy of the inputs."""
    with run.record.phase("reference"):
        own = to_device(inputs, run.place.device)
        return run.reference.run(run.reference.model(run.weights_seed), own, seed)


def compare(run: CandidateRun, trial: Trial, actual: Any, protocol: Protocol) -> Comparison:
    """`actual` against the reference's outputs.

    PyTorch lets cuDNN round the factors of fp32 convolutions to TF32, and this rounding alone exceeds the tolerance of
    `strict`. So the reference's outputs without TF32 are accepted as well. Tiny outputs count as noise unless fp64 gives
    the same values.
    """
    found = compare_outputs(trial.expected, actual, protocol)
    if found.as_noise and _exact_to_the_smallest(run, trial):
        return compare_outputs(trial.expected, actual, protocol, noise_rms=0.0)
    if protocol != "strict" or found.status != "wrong_value" or run.place.device.type != "cuda":
        return found
    with exact_products() as were_exact:
        if were_exact:
            return found
        exact = compare_outputs(expected_outputs(run, trial.inputs, trial.forward_seed), actual, protocol)
    if exact.ok and WITHOUT_TF32 not in run.record.notes:
        run.record.notes.append(WITHOUT_TF32)
    return exact if exact.ok else found


def without_tf32_and_wide(run: CandidateRun, trial: Trial) -> tuple[Any, Any] | None:
    """The reference's outputs for a trial: without TF32, and in fp64. None where it cannot run in fp64, or takes too much
    memory."""
    if run.reference.input_bytes > _MOST_BYTES:
        return None
    on_gpu = run.place.device.type == "cuda"
    exactly = exact_products() if on_gpu else contextlib.nullcontext()
    with run.record.phase("reference"), exactly, contextlib.suppress(DiceError):
        expected = expected_outputs(run, trial.inputs, trial.forward_seed) if on_gpu else trial.expected
        return expected, run.reference.run_wide(run.weights_seed, trial.inputs, trial.forward_seed)
    return None


def _exact_to_the_smallest(run: CandidateRun, trial: Trial) -> bool:
    """Whether the reference in fp64 gives the same outputs, tiny ones included; False where it cannot run in fp64."""
    with run.record.phase("reference"):
        try:
            wide = run.reference.run_wide(run.weights_seed, trial.inputs, trial.forward_seed)
        except DiceError:
            return False
    return compare_outputs(trial.expected, like(trial.expected, wide), "strict", noise_rms=0.0).ok
