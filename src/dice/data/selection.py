"""The rules for which pairs enter CuKe (paper, section 3), as pure functions of pairs and verdicts.

Every source has a rule (`RULES`):

concur      kept without verification: it is curated already
cudallm     verified; correct and with a speed-up of at least the set's threshold (1.5, 2.0 or 2.5)
structural  tried up to five times; kept if any try is correct and faster than PyTorch (above 1.0), as its fastest try
pairs       as cudallm; our own synthetic pairs

The thresholds are inclusive: the published sizes fit "at least" (3,062, 1,425 and 807 of 8,920 cudaLLM rows), and no
measured ratio is exactly a threshold.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dice.config import stage_config
from dice.data.pair import Measured, Pair
from dice.data.sources import MAX_ANSWERS
from dice.kernels.api import Verdict

Statistic = Literal["median", "ci_low"]
EDGES = (1.0, 1.5, 2.0, 2.5, 3.0)
RANGES = ("<1.0", "1.0-1.5", "1.5-2.0", "2.0-2.5", "2.5-3.0", ">3.0")
"""Table 12's bins. A ratio on an edge belongs to the upper bin."""


@stage_config
class Rule:
    """Which pairs of a source are kept."""

    verify: bool = True
    """Run the CUDA programs and keep the correct ones. False: keep all without running them."""
    threshold: Literal["set"] | float | None = "set"
    """Required speed-up: at least the set's threshold (`set`), more than a number; None: no requirement."""
    attempts: int = 1
    """Most tries of one pair; one that succeeds is enough."""
    near_duplicates: bool = True
    """Drop near duplicates, not only exact ones; off where the source consists of small variations."""


RULES: Mapping[str, Rule] = {
    "concur": Rule(verify=False, threshold=None),
    "cudallm": Rule(),
    "structural": Rule(threshold=1.0, attempts=MAX_ANSWERS, near_duplicates=False),
    "pairs": Rule(near_duplicates=False),
}


@dataclass(frozen=True)
class Drop:
    """Why a pair is not in the set."""

    reason: str
    """Stable name: `not_verified`, `wrong_value`, `no_speedup`, `below_threshold`, `leakage`, `near_duplicate`, ..."""
    detail: str


def answer_of(pair: Pair, attempt: int) -> str:
    """The CUDA program of try `attempt` (from 0): a source's answers in turn, and again from the first."""
    answers = pair.origin.get("answers") or [pair.cuda_code]
    return answers[attempt % len(answers)]


def speedup_of(verdict: Verdict, statistic: Statistic) -> float | None:
    """The speed-up that is compared with thresholds; None where it was not measured."""
    return None if verdict.speedup is None else getattr(verdict.speedup, statistic)


def succeeds(verdict: Verdict, rule: Rule, statistic: Statistic) -> bool:
    """Whether no further try is needed: correct, and faster than the number that the rule requires."""
    if verdict.status != "correct":
        return False
    if not isinstance(rule.threshold, float):
        return True
    speedup = speedup_of(verdict, statistic)
    return speedup is not None and speedup > rule.threshold


def best_try(verdicts: Mapping[int, Verdict], statistic: Statistic) -> tuple[int, Verdict] | None:
    """The try that counts for the pair: the fastest correct one (of equals the first), else the last one."""
    if not verdicts:
        return None
    correct = [(attempt, verdict) for attempt, verdict in sorted(verdicts.items()) if verdict.status == "correct"]
    if not correct:
        return max(verdicts.items())
    return max(correct, key=lambda entry: (speedup_of(entry[1], statistic) or 0.0, -entry[0]))


def with_best_try(pair: Pair, verdicts: Mapping[int, Verdict], rule: Rule, statistic: Statistic) -> Pair | Drop:
    """The pair with the program and measurements of its best try, or why it is dropped at every threshold."""
    chosen = best_try(verdicts, statistic)
    if chosen is None:
        if rule.verify:
            return Drop("not_verified", "no verdict for it")
        return pair.model_copy(update={"origin": _without_answers(pair)})
    attempt, verdict = chosen
    if verdict.status != "correct":
        return Drop(verdict.status, f"{len(verdicts)} tried: {verdict.message}"[:300])
    if isinstance(rule.threshold, float) and not succeeds(verdict, rule, statistic):
        speedup = speedup_of(verdict, statistic)
        if speedup is not None:
            return Drop(
                "below_threshold",
                f"speed-up {speedup:.3f} in {len(verdicts)} tries, more than {rule.threshold:g} asked",
            )
    measured = Measured(
        status=verdict.status,
        speedup=speedup_of(verdict, statistic),
        runtime_ms=verdict.runtime_ms.median if verdict.runtime_ms else None,
        reference_ms=verdict.reference_ms.median if verdict.reference_ms else None,
        protocol=verdict.protocol,  # pyright: ignore[reportCallIssue] - Measured allows further measurements
        gpu=verdict.host.gpu,  # pyright: ignore[reportCallIssue]
    )
    origin = _without_answers(pair) | ({"attempt": attempt} if rule.attempts > 1 else {})
    return pair.model_copy(update={"cuda_code": answer_of(pair, attempt), "measured": measured, "origin": origin})


def _without_answers(pair: Pair) -> dict[str, object]:
    return {key: value for key, value in pair.origin.items() if key != "answers"}


def passes(pair: Pair, rule: Rule, threshold: float, keep_unmeasured: bool) -> Drop | None:
    """Why the pair is not in the set of `threshold`; None where it is."""
    if rule.threshold is None:
        return None
    if pair.speedup is None:
        return None if keep_unmeasured else Drop("no_speedup", "correct, but no speed-up was measured")
    if rule.threshold == "set" and pair.speedup < threshold:
        return Drop("below_threshold", f"speed-up {pair.speedup:.3f}, at least {threshold:g} asked")
    if isinstance(rule.threshold, float) and pair.speedup <= rule.threshold:
        return Drop("below_threshold", f"speed-up {pair.speedup:.3f}, more than {rule.threshold:g} asked")
    return None


def preference(pair: Pair, rule: Rule) -> tuple[bool, float]:
    """Sort key: of two duplicates the first one is kept.

    Pairs whose rule does not use the set's threshold come first, then those that are kept unmeasured, then the fastest. So
    pairs that pass a stricter threshold come before those that do not, and the sets of all thresholds agree on which pair
    duplicates which.
    """
    if rule.threshold != "set":
        return (False, 0.0)
    return (True, -math.inf if pair.speedup is None else -pair.speedup)


def histogram(speedups: Iterable[float], rows: int) -> list[dict[str, float | int | str]]:
    """Table 12 for the speed-ups of correct pairs.

    `percent` refers to those pairs; `percent_of_rows` refers to all `rows` of the source, where rows without a correct
    program count in the first bin, as in the published counts of the 8,920 rows.
    """
    counts = [0] * len(RANGES)
    for speedup in speedups:
        counts[sum(speedup >= edge for edge in EDGES)] += 1
    measured = sum(counts)
    without = rows - measured
    return [
        {
            "range": name,
            "n": count,
            "percent": round(100 * count / measured, 1) if measured else 0.0,
            "percent_of_rows": round(100 * (count + (without if name == RANGES[0] else 0)) / rows, 1) if rows else 0.0,
        }
        for name, count in zip(RANGES, counts, strict=True)
    ]


def tries_made(verdicts: Sequence[Mapping[int, Verdict]]) -> dict[str, int]:
    """Number of tries -> pairs that took this many."""
    return dict(sorted(Counter(str(len(one)) for one in verdicts).items()))
