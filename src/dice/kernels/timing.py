"""Statistics of measured times: pure functions on lists of milliseconds.

paper   ratio of means of independent timings, no interval (KernelBench src/eval.py; fast_p compares it with p).
strict  candidate and reference in rounds of ABBA order, one ratio per round, the median with a bootstrap interval.
        Rounds cancel drift (clocks, temperature) to first order. The bootstrap draws blocks of consecutive rounds,
        because disturbances come in bursts. The interval predicts the median of a repeated measurement, because
        speedups are compared between runs. It is widened by what interleaving cannot show: the resolution of events,
        the memory layout of one process, the launch time where the times contain it (`Side.host_ms`), and the control:
        how much the first calls of all rounds differ from the second calls of the same program.

The times of `strict` are GPU times: the calls were in the GPU's queue before it started them (`candidate.call_timer`).
They do not show the speed of a program that keeps the host busy for longer than the GPU: see `Side.whole_ms`.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dice.kernels.records.verdict import Speedup, Timing

RESOLUTION_MS = 0.001
"""Uncertainty of one median by CUDA events (their resolution is about 0.5 us)."""
SYSTEMATIC = 0.03
"""Relative difference between two processes that run the same program. More rounds do not average it out."""
HOST_RATIO = 3.0
"""Host times of the same work differ by less than this between two processes (2.4 in 50 tries on a busy H200 machine)."""
STEP_MS = 0.02
"""Largest difference of the host time for one operator or launch between two processes of a busy machine."""
_BLOCKS = 8
"""Number of blocks of consecutive rounds that the bootstrap draws."""
_STRETCH = 2**0.5 * 1.3
"""Width of an interval for a repeated median relative to an interval for the true median. sqrt(2): both runs have the
same noise. 1.3: the percentile bootstrap is too narrow with so few blocks; 2.36 (Student's t, 7 degrees of freedom)
instead of 1.96, and sqrt(8 / 7)."""
_RESAMPLES = 1000

CLOCK_RATIO = 1.5
"""Largest ratio of host clock to event clock; CUDA-L2 rejects at the same ratio (deepreinforce-ai/CUDA-L2, defense.py)."""
CLOCK_SLACK_MS = 0.1
"""Two clocks agree below this difference, which is launch jitter."""

SideName = Literal["candidate", "reference"]
Round = tuple[SideName, SideName, SideName, SideName]
"""Who makes each of the four calls of a round."""


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


def abba(rounds: int, generator: random.Random) -> list[Round]:
    """The order of calls in each round: ABBA or BAAB at random, so that neither program is always first."""
    first: Round = ("candidate", "reference", "reference", "candidate")
    second: Round = ("reference", "candidate", "candidate", "reference")
    return [first if generator.random() < 0.5 else second for _ in range(rounds)]


def parts(calls: int, most: int, generator: random.Random) -> list[int]:
    """Split a number of calls into at most `most` parts of unforeseeable lengths and order; one has at least half of them."""
    count = max(1, min(most, calls // 2))
    short = [generator.randint(1, max(1, calls // (2 * count))) for _ in range(count - 1)]
    split = [*short, calls - sum(short)]
    generator.shuffle(split)
    return split


@dataclass(frozen=True)
class Side:
    """The times of one program under the strict protocol, in milliseconds."""

    rounds: Sequence[tuple[float, float]]
    """Its two calls in each round, by events."""
    launch_ms: Sequence[float] = ()
    """Host time to launch each call; empty where the times already contain it."""
    host_ms: float = 0.0
    """How much the times may differ between processes because they contain launches; 0 where they contain none."""

    @property
    def typical_ms(self) -> float:
        """Median over rounds of the mean of the two calls."""
        return statistics.median(sum(pair) / 2 for pair in self.rounds)

    @property
    def whole_ms(self) -> float:
        """Time per call when calls follow each other: the longer one of GPU time and host time. The host time is the
        lower decile, because other processes can only make it longer."""
        launches = sorted(self.launch_ms)
        return max(self.typical_ms, launches[len(launches) // 10] if launches else 0.0)

    @property
    def drift(self) -> float:
        """The control: the ratio of first to second calls (median over rounds), or its inverse; at least 1."""
        ratio = statistics.median(first / second for first, second in self.rounds)
        return max(ratio, 1 / ratio)

    @property
    def uncertainty(self) -> float:
        """Relative uncertainty of a median over rounds."""
        return (RESOLUTION_MS + self.host_ms) / self.typical_ms


def is_host_bound(candidate: Side, reference: Side) -> bool:
    """Whether the candidate keeps the host busy for so much longer than the reference runs that GPU time does not tell."""
    return candidate.whole_ms > max(HOST_RATIO * reference.whole_ms, candidate.typical_ms)


def paired_speedup(candidate: Side, reference: Side, generator: random.Random) -> Speedup | None:
    """Median over rounds of (sum of two reference times / sum of two candidate times), with a 95 % interval.

    The interval is the percentile bootstrap over blocks of rounds, stretched around the median (in the logarithm) to
    contain the median of a repeated measurement, then widened by `SYSTEMATIC`, the uncertainties and the controls of
    both sides. For a host-bound candidate the ratio is that of the whole times, within `HOST_RATIO`. None when a time
    is not positive.
    """
    if len(candidate.rounds) != len(reference.rounds):
        raise ValueError(f"{len(candidate.rounds)} candidate rounds, {len(reference.rounds)} reference rounds")
    if not candidate.rounds or any(
        time <= 0 for side in (candidate, reference) for pair in side.rounds for time in pair
    ):
        return None
    if is_host_bound(candidate, reference):
        ratio = reference.whole_ms / candidate.whole_ms
        return Speedup(median=ratio, ci_low=ratio / HOST_RATIO, ci_high=ratio * HOST_RATIO)
    ratios = [sum(theirs) / sum(mine) for mine, theirs in zip(candidate.rounds, reference.rounds, strict=True)]
    median = statistics.median(ratios)
    low, high = (median * (bound / median) ** _STRETCH for bound in _bootstrap(ratios, generator))
    slack = 1 + SYSTEMATIC + candidate.uncertainty + reference.uncertainty
    slack *= max(candidate.drift, reference.drift)
    return Speedup(median=median, ci_low=low / slack, ci_high=high * slack)


def _bootstrap(values: Sequence[float], generator: random.Random) -> tuple[float, float]:
    """95 % percentile interval of the median; consecutive values are drawn together."""
    size = -(-len(values) // _BLOCKS)
    blocks = [values[begin : begin + size] for begin in range(0, len(values), size)]
    draws = (generator.choices(blocks, k=len(blocks)) for _ in range(_RESAMPLES))
    medians = sorted(statistics.median(value for block in draw for value in block) for draw in draws)
    return medians[int(0.025 * _RESAMPLES)], medians[int(0.975 * _RESAMPLES) - 1]
