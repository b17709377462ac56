"""Whether two outputs agree by the measure of the experiments, which change a problem and ask who follows."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from dice.kernels.compare import NOISE_RMS, compare_outputs, computable


def agree(expected: Any, actual: Any) -> bool:
    """Whether the paper's tolerance accepts an output, where one of an rms below 1 is first scaled to an rms of 1. The shares
    of a softmax are less than its absolute part, so without that nobody would have to follow anything."""
    leaves, structure = tree_flatten(expected)
    others, other_structure = tree_flatten(actual)
    if len(leaves) == len(others):
        factors = [_factor(leaf) for leaf in leaves]
        expected = tree_unflatten(
            [_scaled(leaf, factor) for leaf, factor in zip(leaves, factors, strict=True)], structure
        )
        actual = tree_unflatten(
            [_scaled(leaf, factor) for leaf, factor in zip(others, factors, strict=True)], other_structure
        )
    return compare_outputs(expected, actual, "paper").ok


def _factor(value: Any) -> float:
    """What brings a small output to an rms of 1. What may be rounding noise stays as it is."""
    if not _is_floating(value) or not value.numel():
        return 1.0
    rms = math.sqrt(float(value.double().square().mean()))
    return 1 / rms if NOISE_RMS < rms < 1 else 1.0


def _scaled(value: Any, factor: float) -> Any:
    return (computable(value) * factor).to(value.dtype) if factor != 1 and _is_floating(value) else value


def _is_floating(value: Any) -> bool:
    return torch.is_tensor(value) and value.is_floating_point() and not value.is_meta
