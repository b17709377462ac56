"""From times to statements about speed: pure functions on lists of milliseconds.

paper   ratio of means of independent timings, no interval (KernelBench src/eval.py; fast_p compares it with p).
strict  candidate and reference in rounds of ABBA order, one ratio per round, the median with a bootstrap interval.
        Rounds cancel drift (clocks, temperature) to first order. The interval is where a repetition of the whole
        measurement puts its median, since speedups are compared between runs; it is widened by what interleaving
        cannot see: the resolution of events, and the luck of one process's memory layout and host speed.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from typing import Literal

from dice.kernels.verdict import Speedup, Timing

RESOLUTION_MS = 0.001
"""Uncertainty of one median by CUDA events (their resolution is about 0.5 us)."""
SYSTEMATIC = 0.01
"""Relative difference between two processes that run the same program, which no number of rounds averages out."""
_REPETITION = 2**0.5
"""Width of an interval for a repetition's median, beside one for the truth: both runs have the same noise."""
_RESAMPLES = 2000

CLOCK_RATIO = 1.5
"""Host clock over event clock; the ratio at which CUDA-L2 rejects (deepreinforce-ai/CUDA-L2, defense.py)."""
CLOCK_SLACK_MS = 0.1
"""Below this difference two clocks agree: launch jitter."""

Turn = Literal["candidate", "reference"]


def disagree(shorter_ms: float, longer_ms: float) -> bool:
    """Whether two clocks over the same calls differ by more than jitter."""
    return longer_ms > CLOCK_RATIO * shorter_ms and longer_ms - shorter_ms > CLOCK_SLACK_MS


def summary(times_ms: Sequence[float]) -> Timing:
    """Median, mean and standard deviation (n - 1; 0 for one value)."""
    return Timing(
        median=statistics.median(times_ms),
        mean=statistics.fmean(times_ms),
        std=statistics.stdev(times_ms) if len(times_ms) > 1 else 0.0,
        n=len(times_ms),
    )


def ratio_of_means(candidate_ms: Sequence[float], reference_ms: Sequence[float]) -> Speedup | None:
    """The paper's speed-up; None when a mean is not positive, which no real timing gives."""
    candidate, reference = statistics.fmean(candidate_ms), statistics.fmean(reference_ms)
    if candidate <= 0 or reference <= 0:
        return None
    return Speedup(median=reference / candidate, ci_low=None, ci_high=None)


def abba(rounds: int, generator: random.Random) -> list[tuple[Turn, Turn, Turn, Turn]]:
    """The order of turns of each round: ABBA or BAAB, by lot, so that neither program is always first."""
    first: tuple[Turn, Turn, Turn, Turn] = ("candidate", "reference", "reference", "candidate")
    second: tuple[Turn, Turn, Turn, Turn] = ("reference", "candidate", "candidate", "reference")
    return [first if generator.random() < 0.5 else second for _ in range(rounds)]


def paired_speedup(
    candidate_ms: Sequence[tuple[float, float]],
    reference_ms: Sequence[tuple[float, float]],
    generator: random.Random,
) -> Speedup | None:
    """Median over rounds of (sum of two reference times / sum of two candidate times), with a 95 % interval.

    The interval is the percentile bootstrap over rounds, stretched about the median (in the logarithm) to hold a
    repetition's median, then widened by `SYSTEMATIC` and by `RESOLUTION_MS` relative to the two medians. None when a
    round has no positive time.
    """
    if len(candidate_ms) != len(reference_ms):
        raise ValueError(f"{len(candidate_ms)} candidate rounds, {len(reference_ms)} reference rounds")
    pairs = [(sum(mine), sum(theirs)) for mine, theirs in zip(candidate_ms, reference_ms, strict=True)]
    if not pairs or any(mine <= 0 or theirs <= 0 for mine, theirs in pairs):
        return None
    ratios = [theirs / mine for mine, theirs in pairs]
    medians = sorted(statistics.median(generator.choices(ratios, k=len(ratios))) for _ in range(_RESAMPLES))
    low, high = medians[int(0.025 * _RESAMPLES)], medians[int(0.975 * _RESAMPLES) - 1]
    mine, theirs = (statistics.median(pair[side] / 2 for pair in pairs) for side in (0, 1))
    slack = 1 + SYSTEMATIC + RESOLUTION_MS / mine + RESOLUTION_MS / theirs
    median = statistics.median(ratios)
    low, high = (median * (bound / median) ** _REPETITION for bound in (low, high))
    return Speedup(median=median, ci_low=low / slack, ci_high=high * slack)


def is_faster(speedup: Speedup | None, threshold: float) -> bool:
    """Whether the candidate beats `threshold`: the lower bound where there is one, else the ratio; always strictly."""
    if speedup is None:
        return False
    return (speedup.median if speedup.ci_low is None else speedup.ci_low) > threshold
