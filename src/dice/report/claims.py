"""`dice claims`: each claim of the paper as an effect with an interval, and what the interval says of it.

A claim is a list of contrasts (experiments/claims.yaml). The effect of a contrast is the rate of its rows `more` minus that
of its rows `less`, in points; of a cost, what `more` took above `less`, in percent. Its interval is the middle 95 % of a
bootstrap. Answers to one problem are alike, and so are the answers of one seed, so problems and seeds are drawn anew, and
not answers: of several samples of one seed the mean counts (A. B. Owen 2007, "The pigeonhole bootstrap", Annals of Applied
Statistics 1); the problems are the same for all rows, which pairs them. Rows of other verdicts have seeds of their own; rows
that count the same verdicts, with and without the robust check, share them. Of a cost, the steps of each run are drawn anew.

shown          the interval lies on the claim's side of its bound, which is 0 where none is given
contradicted   it lies on the other side
not shown      neither
not testable   a row has answers of fewer than `MIN_SEEDS` seeds, and another seed would give other ones
not measured   a row has no answers at this scale

A claim is shown when all of its measured contrasts are, and contradicted when one of them is; it is not testable when none of
them is: in each benchmark of the study separately.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dice.config import add_options, config_from, stage_config, to_spec
from dice.errors import DiceError
from dice.evaluation.score import Metric, is_hit
from dice.jsonl import read_jsonl, read_objects
from dice.kernels.api import Protocol, Verdict
from dice.manifest import Stopwatch, write_manifest
from dice.report.claims_figure import draw_claims
from dice.report.rows import Row, write_csv

Statistic = Literal["exec", "fast1", "fast2", "cost"]
DRAWS = 10_000
MIN_SEEDS = 3
Floats = NDArray[np.float64]


@stage_config
class ClaimRow:
    """One row of a contrast: a model under one reading of its verdicts, or a training run."""

    name: str
    """Name of the row in claims.yaml."""
    verdicts: tuple[str, ...] = ()
    """Verdicts of its answers, one file for each seed; none: not measured."""
    history: str | None = None
    """For a cost: history.jsonl of its training."""
    greedy: bool = True
    """Whether every seed would give the same answers: one model, decoded greedily."""
    robust: bool = True
    """With the robust check."""
    reason: str = ""
    """Why it is not measured."""


@stage_config
class Contrast:
    """Rows whose numbers are added, and rows whose numbers are taken away."""

    more: tuple[ClaimRow, ...] = Field(min_length=1)
    """Added."""
    less: tuple[ClaimRow, ...] = Field(min_length=1)
    """Taken away; of a cost, what `more` is divided by."""


@stage_config
class ClaimEvidence:
    """One claim of the paper."""

    name: str
    """Its name in claims.yaml."""
    text: str
    """The claim in a sentence."""
    where: str
    """Where the paper makes it."""
    statistic: Statistic = "exec"
    """What is compared: a rate over all problems of the benchmark, or seconds of training."""
    benchmark: str
    """Version of the benchmark whose problems were asked."""
    at_most: float | None = None
    """The claim says that the effect is below this; None: that it is above 0."""
    contrasts: tuple[Contrast, ...] = Field(min_length=1)
    """What must hold for it."""


@stage_config
class ClaimsConfig:
    """What `dice claims` reads and writes."""

    claims: tuple[ClaimEvidence, ...]
    """The claims, in their order."""
    protocol: Protocol = "paper"
    """Which of the protocols in the files is counted."""
    scale: str
    """Name of the scale."""
    out: str
    """CSV to write, a row for each contrast; the figure goes beside it as PDF and PNG."""


def answers(row: ClaimRow, metric: Metric, protocol: Protocol) -> tuple[list[str], Floats]:
    """(ids of the problems, [seeds, problems]: the share of the seed's answers that count).

    Raises DiceError where a sample of a seed lacks a problem, or where no speed was measured.
    """
    hits: dict[tuple[int, int], dict[str, bool]] = {}
    for seed, path in enumerate(row.verdicts):
        for verdict in read_jsonl(path, Verdict):
            if verdict.protocol != protocol:
                continue
            if metric != "exec" and verdict.backend != "cuda":
                raise DiceError(f"{path}: the CPU back end measures no speed, so {metric} cannot be compared.")
            hits.setdefault((seed, verdict.sample), {})[verdict.problem_id] = is_hit(verdict, metric, row.robust)
    if not hits:
        raise DiceError(f"{row.verdicts[0]}: no verdicts under the protocol {protocol}.")
    problems = sorted(set().union(*hits.values()))
    if lacking := [draw for draw, found in hits.items() if len(found) < len(problems)]:
        raise DiceError(f"{row.name}: seed {lacking[0][0]}, sample {lacking[0][1]} has not answered all problems.")
    shares = [
        np.mean([[found[problem] for problem in problems] for (of, _), found in hits.items() if of == seed], axis=0)
        for seed in sorted({seed for seed, _ in hits})
    ]
    return problems, np.array(shares, float)


def signed_sets(contrast: Contrast, found: Sequence[Floats]) -> list[Floats]:
    """For each set of verdict files [seeds, problems]: the sum of the rows that count it, those of `less` negative.

    found: `answers` of `more`, then of `less`.
    """
    sets: dict[tuple[str, ...], Floats] = {}
    signs = [1] * len(contrast.more) + [-1] * len(contrast.less)
    for row, sign, hits in zip((*contrast.more, *contrast.less), signs, found, strict=True):
        sets[row.verdicts] = sets.get(row.verdicts, np.zeros_like(hits)) + sign * hits
    return list(sets.values())


def effect_of_rates(sets: Sequence[Floats], draws: int = DRAWS, seed: int = 0) -> tuple[float, float, float]:
    """(effect, low, high), as shares, of the sum of `signed_sets`, whose problems are the same in the same order.

    The seeds of a set are drawn once for all of its rows, the problems once for all sets.
    """
    rng = np.random.default_rng(seed)
    n = sets[0].shape[1]
    problems = rng.multinomial(n, np.full(n, 1 / n), size=draws) / n
    resampled = np.zeros(draws)
    for hits in sets:
        seeds = rng.multinomial(len(hits), np.full(len(hits), 1 / len(hits)), size=draws) / len(hits)
        resampled += ((seeds @ hits) * problems).sum(axis=1)
    low, high = np.quantile(resampled, (0.025, 0.975))
    return float(sum(hits.mean() for hits in sets)), float(low), float(high)


def effect_of_costs(more: Sequence[Floats], less: Sequence[Floats]) -> tuple[float, float, float]:
    """(effect, low, high) of runs, each [steps] seconds: the sum of `more` over that of `less`, minus 1."""
    rng = np.random.default_rng(0)
    sums = [[rng.choice(run, size=(DRAWS, len(run))).sum(axis=1) for run in runs] for runs in (more, less)]
    resampled = sum(sums[0], np.zeros(DRAWS)) / sum(sums[1], np.zeros(DRAWS)) - 1
    low, high = np.quantile(resampled, (0.025, 0.975))
    return sum(run.sum() for run in more) / sum(run.sum() for run in less) - 1, float(low), float(high)


def has_few_seeds(row: ClaimRow, seeds: int) -> bool:
    """Whether more seeds are needed; what has answers of several is not one model, whatever its decoding."""
    return seeds < MIN_SEEDS and not (row.greedy and seeds == 1)


def verdict_of(low: float, high: float, at_most: float | None = None) -> str:
    """What an interval says about a claim: that the effect is above 0, or below `at_most`."""
    holds, fails = (low > 0, high < 0) if at_most is None else (high < at_most, low > at_most)
    return "shown" if holds else "contradicted" if fails else "not shown"


def verdict_of_all(verdicts: Sequence[str]) -> str:
    """What its contrasts say about a claim."""
    measured = [verdict for verdict in verdicts if verdict != "not measured"]
    if not measured:
        return "not measured"
    if "contradicted" in measured:
        return "contradicted"
    return measured[0] if len(set(measured)) == 1 else "not shown"


def judged(contrast: Contrast, claim: ClaimEvidence, protocol: Protocol) -> Row:
    """One contrast: its effect in points or percent, the ends of its interval, and the verdict. Raises DiceError where its
    rows cannot be compared."""
    rows = (*contrast.more, *contrast.less)
    name = f"{' + '.join(row.name for row in contrast.more)} - {' - '.join(row.name for row in contrast.less)}"
    if claim.statistic == "cost":
        name = name.replace(" - ", " over ", 1)
    cells = dict.fromkeys(("problems", "seeds", "effect", "low", "high"), "")
    missing = next((row for row in rows if not (row.history if claim.statistic == "cost" else row.verdicts)), None)
    if missing is not None:
        return {"contrast": name, **cells, "verdict": "not measured", "reason": f"{missing.name}: {missing.reason}"}
    reason = ""
    if claim.statistic == "cost":
        more, less = ([_seconds(row) for row in side] for side in (contrast.more, contrast.less))
        ends = effect_of_costs(more, less)
    else:
        found = [answers(row, claim.statistic, protocol) for row in rows]
        if other := next((row.name for row, (asked, _) in zip(rows, found, strict=True) if asked != found[0][0]), None):
            raise DiceError(f"{claim.name}: {other} was asked other problems than {rows[0].name}.")
        hits = [hit for _, hit in found]
        ends = effect_of_rates(signed_sets(contrast, hits))
        cells |= {"problems": str(len(found[0][0])), "seeds": "/".join(str(len(hit)) for hit in hits)}
        few = next((row.name for row, hit in zip(rows, hits, strict=True) if has_few_seeds(row, len(hit))), None)
        reason = f"{few} has answers of fewer than {MIN_SEEDS} seeds" if few else ""
    effect, low, high = (100 * end for end in ends)
    cells |= {"effect": f"{effect:.1f}", "low": f"{low:.1f}", "high": f"{high:.1f}"}
    verdict = "not testable" if reason else verdict_of(low, high, claim.at_most)
    return {"contrast": name, **cells, "verdict": verdict, "reason": reason}


def _seconds(row: ClaimRow) -> Floats:
    """Seconds of each step of a training run."""
    assert row.history is not None
    return np.array([step["seconds"] for _, step in read_objects(row.history)], float)


def make_claims(config: ClaimsConfig) -> list[Row]:
    """Run the stage: CSV, figure, manifest. Raises DiceError for rows that cannot be compared."""
    watch = Stopwatch()
    lines: list[Row] = []
    for claim in config.claims:
        found = [judged(contrast, claim, config.protocol) for contrast in claim.contrasts]
        whole = verdict_of_all([line["verdict"] for line in found])
        measured = sum(line["verdict"] != "not measured" for line in found)
        about = {"claim": claim.name, "text": claim.text, "where": claim.where, "claim_verdict": whole}
        about |= {"measured": f"{measured} of {len(found)}", "statistic": claim.statistic}
        where = {"scale": config.scale, "benchmark": claim.benchmark}
        lines += [about | line | where for line in found]
    out = Path(config.out)
    draw_claims(lines, out)
    write_csv(out, lines)
    rows = [row for claim in config.claims for contrast in claim.contrasts for row in (*contrast.more, *contrast.less)]
    read = [path for row in rows for path in (*row.verdicts, *filter(None, [row.history]))]
    write_manifest(out, stage="claims", spec=to_spec(config), watch=watch, inputs=read, seeds=[0])
    return lines


def summary(lines: Sequence[Row]) -> list[str]:
    """A line for each claim and benchmark."""
    claims: dict[tuple[str, str], Any] = {(line["claim"], line["benchmark"]): line for line in lines}
    return [
        f"{line['claim_verdict']:<13} {line['text']} "
        f"({line['where']}; {line['benchmark']}: {line['measured']} contrasts measured)"
        for line in claims.values()
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice claims`."""
    add_options(parser, ClaimsConfig)


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice claims`."""
    config = config_from(args, ClaimsConfig)
    lines = make_claims(config)
    print("\n".join(summary(lines)))
    print(f"effects and intervals: {config.out}, and beside it as PDF and PNG")
    return 0
