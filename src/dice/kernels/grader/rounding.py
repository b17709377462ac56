"""How far a candidate's outputs are from those in fp64, as a multiple of how far the fp32 reference's are."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from dice.kernels.grader.agreement import without_tf32_and_wide
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.reference import Trial
from dice.kernels.rounding_tolerance import unit

_UNIT = unit(torch.float32)
_UNKNOWN = 2.0**-12
"""A relative error of the reference above which its fp64 run is no truth: it draws numbers, or is ill-conditioned."""
_FEWEST = 16
"""Elements of all outputs together: the errors of a few may cancel by luck."""


def rounding(run: CandidateRun, trial: Trial, actual: Any) -> float | None:
    """Error of `actual`, the candidate's outputs for `trial`, divided by that of the reference without TF32: 1 is as good,
    TF32 gives some thousands. Both by root mean square and by maximum; the worse counts. None where it cannot be measured.
    """
    both = without_tf32_and_wide(run, trial)
    return None if both is None else error_ratio(both[0], actual, both[1])


def error_ratio(expected: Any, actual: Any, wide: Any) -> float | None:
    """Error of `actual` against `wide` over that of `expected`, for the worst floating-point tensor; None where `expected`
    itself is not near `wide`, or has few elements or no floating-point tensor."""
    worst: float | None = None
    compared = 0
    for theirs, mine, exact in zip(*map(tree_leaves, (expected, actual, wide)), strict=False):
        if not torch.is_tensor(theirs) or not theirs.is_floating_point() or not theirs.numel():
            continue
        if not torch.is_tensor(mine) or not torch.is_tensor(exact) or not mine.shape == theirs.shape == exact.shape:
            return None
        truth = exact.double()
        defined = truth.isfinite()
        truth = truth[defined]
        compared += truth.numel()
        if not truth.numel():
            continue
        right = _errors(theirs.double()[defined], truth)
        scale = _errors(truth, torch.zeros_like(truth))
        if not right[0] <= _UNKNOWN * scale[0]:
            return None
        found = _errors(mine.to(truth.device).double()[defined], truth)
        shares = [a / max(b, _UNIT * size, 1e-300) for a, b, size in zip(found, right, scale, strict=True)]
        worst = max([*shares, worst or 0.0]) if all(share == share for share in shares) else float("inf")
    return worst if compared >= _FEWEST else None


def _errors(values: torch.Tensor, truth: torch.Tensor) -> tuple[float, float]:
    """Root mean square and largest of the differences."""
    difference = values - truth
    return float(difference.square().mean().sqrt()), float(difference.abs().max())
