"""`dice score`: verdicts of one model counted: Exec and fast_p by level, with and without the robust check.

Exec is the share of problems with a correct answer, fast_p the share whose answer is correct and more than p times as
fast as PyTorch (KernelBench, arXiv 2502.10517; strict `>`). One answer per problem and seed; seeds are pooled for the
Wilson interval, and each seed's own rate is kept. Where problems have several answers, pass@k is estimated from all of
them. Where nothing was timed, as on the CPU back end, fast_p is null.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dice.config import add_options, config_from, stage_config, to_spec
from dice.errors import DiceError, HarnessError
from dice.evaluation.failures import failure_class
from dice.evaluation.pass_at_k import pass_at_k
from dice.jsonl import read_jsonl, write_text
from dice.kernels.api import Backend, Problem, Protocol, Verdict
from dice.manifest import Stopwatch, write_manifest

Metric = Literal["exec", "fast1", "fast2"]
METRICS: tuple[Metric, ...] = ("exec", "fast1", "fast2")
THRESHOLDS: dict[Metric, float] = {"fast1": 1.0, "fast2": 2.0}
PASS_AT = (1, 8, 64)
Z95 = 1.959963984540054


class Rate(BaseModel):
    """A share of `n` answers; all in 0..1."""

    model_config = ConfigDict(extra="forbid")
    hits: int
    n: int
    value: float
    independent: float
    """Answers that the interval counts as independent: `n` where each problem is answered once, the number of problems
    where all answers to a problem agree."""
    low: float
    """Lower end of the 95 % Wilson interval over `independent` answers."""
    high: float
    by_seed: list[float]
    """Rate of every seed, in the order of the files."""
    by_problem: dict[str, float]
    """Share of each problem's answers that count: what two models are compared by."""


class PassRate(BaseModel):
    """pass@k: the chance that one of k answers to a problem counts, mean over problems; all in 0..1."""

    model_config = ConfigDict(extra="forbid")
    value: float
    independent: float
    """Problems that the interval counts as independent."""
    low: float
    """Lower end of the 95 % Wilson interval over `independent` problems."""
    high: float


class LevelScore(BaseModel):
    """One level under one reading of the status."""

    model_config = ConfigDict(extra="forbid")
    level: int
    robust: bool
    """With the robust check (paper, Table 8): deceptive answers do not count."""
    metrics: dict[Metric, Rate | None]
    """None: not measured (nothing was timed)."""
    pass_at: dict[int, PassRate] = {}
    """k -> pass@k of Exec, for each k of 1, 8 and 64 for which every problem has as many answers."""
    statuses: dict[str, int]


class Score(BaseModel):
    """Everything counted for one model."""

    model_config = ConfigDict(extra="forbid")
    schema_version: int = 1
    backend: Backend
    protocol: Protocol
    seeds: int
    problems: int
    levels: list[LevelScore]
    failures: dict[str, int]
    """Number of answers by failure class (dice.evaluation.failures)."""
    gpus: list[str]

    def level(self, level: int, robust: bool = True) -> LevelScore | None:
        """The score of one level; None where the benchmark lacks it."""
        return next((row for row in self.levels if row.level == level and row.robust == robust), None)


def wilson(hits: float, n: float) -> tuple[float, float]:
    """Wilson's score interval of a share (E. B. Wilson 1927), both ends in 0..1; n must be positive.

    `hits` and `n` need not be whole: an effective sample size is not.
    """
    z2 = Z95 * Z95
    centre = (hits + z2 / 2) / (n + z2)
    half = Z95 * math.sqrt(hits * (n - hits) / n + z2 / 4) / (n + z2)
    # exact at the ends, where rounding would leave -1e-17
    return (0.0 if hits == 0 else centre - half), (1.0 if hits == n else centre + half)


Outcome = tuple[str, bool]
"""One answer: the problem's id, and whether it counts."""


def rate(seeds: Sequence[Sequence[Outcome]]) -> Rate:
    """The share of answers that count, over all seeds. Raises ValueError for no answers.

    Answers to one problem are a cluster: greedy decoding gives the same one under each seed. The interval is Wilson's
    with the effective sample size (N. Dean and M. Pagano 2015, Journal of Survey Statistics and Methodology 3).
    """
    outcomes = [outcome for seed in seeds for outcome in seed]
    if not outcomes:
        raise ValueError("no answers")
    hits, n = sum(hit for _, hit in outcomes), len(outcomes)
    independent = effective_answers(outcomes)
    low, high = wilson(hits * independent / n, independent)
    each = [sum(hit for _, hit in seed) / len(seed) for seed in seeds if seed]
    problems = {name: statistics.fmean(hits) for name, hits in clusters(outcomes).items()}
    return Rate(
        hits=hits,
        n=n,
        value=hits / n,
        independent=independent,
        low=low,
        high=high,
        by_seed=each,
        by_problem=problems,
    )


def clusters(outcomes: Sequence[Outcome]) -> dict[str, list[bool]]:
    """Problem -> whether each of its answers counts."""
    found: dict[str, list[bool]] = {}
    for problem, hit in outcomes:
        found.setdefault(problem, []).append(hit)
    return found


def effective_answers(outcomes: Sequence[Outcome]) -> float:
    """The number of independent answers that would tell as much: between the number of problems and that of answers.

    p (1 - p) over the variance of the share, which is the clusters' (problems'). Where all answers agree the variance
    says nothing, and each problem counts once.
    """
    problems = clusters(outcomes)
    n, right = len(outcomes), sum(hit for _, hit in outcomes)
    if right in (0, n):
        return float(len(problems))
    # In whole numbers, which round alike in every order and every Python: n^4 times the variance
    variance = sum((n * sum(hits) - right * len(hits)) ** 2 for hits in problems.values())
    if variance == 0:
        return float(n)
    return min(float(n), max(float(len(problems)), right * (n - right) * n**2 / variance))


def pass_rate(outcomes: Sequence[Outcome], k: int) -> PassRate | None:
    """pass@k without bias (dice.evaluation.pass_at_k); None where a problem has fewer than k answers.

    A problem is a cluster: the interval is Wilson's with the effective number of problems, p (1 - p) over the variance of
    the mean, at least the number of problems and at most that of disjoint groups of k answers.
    """
    answers = clusters(outcomes).values()
    if not answers or min(map(len, answers)) < k:
        return None
    rates = [pass_at_k(len(hits), sum(hits), k) for hits in answers]
    value, most = statistics.fmean(rates), max(len(rates), len(outcomes) // k)
    variance = math.fsum((rate - value) ** 2 for rate in rates) / len(rates) ** 2
    independent = float(len(rates))
    if 0.0 < value < 1.0:
        independent = min(most, max(independent, value * (1 - value) / variance)) if variance else float(most)
    low, high = wilson(value * independent, independent)
    return PassRate(value=value, independent=independent, low=low, high=high)


def is_hit(verdict: Verdict, metric: Metric, robust: bool) -> bool:
    """Whether one answer counts. Speed under `strict` counts only when the interval's lower end passes (if there is one)."""
    status = verdict.status if robust else verdict.functional_status
    if status != "correct":
        return False
    if metric == "exec":
        return True
    if verdict.speedup is None:
        return False
    speedup = verdict.speedup.median
    if verdict.protocol == "strict" and verdict.speedup.ci_low is not None:
        speedup = verdict.speedup.ci_low
    return speedup > THRESHOLDS[metric]


def was_timed(verdicts: Sequence[Verdict]) -> bool:
    """Whether fast_p can be told: kernels ran on a GPU, and verification was not told to leave their times out."""
    right = [verdict for verdict in verdicts if verdict.functional_status == "correct"]
    on_gpu = all(verdict.backend == "cuda" for verdict in verdicts)
    return on_gpu and (not right or any(verdict.speedup is not None for verdict in right))


def count(verdicts_by_seed: Sequence[Sequence[Verdict]], levels: dict[str, int]) -> list[LevelScore]:
    """Scores of every level, plain and robust. `levels`: problem id -> level."""
    rows = []
    timed = was_timed([verdict for verdicts in verdicts_by_seed for verdict in verdicts])
    for level in sorted(set(levels.values())):
        seeds = [[v for v in verdicts if levels[v.problem_id] == level] for verdicts in verdicts_by_seed]
        everything = [verdict for seed in seeds for verdict in seed]
        for robust in (True, False):
            metrics: dict[Metric, Rate | None] = {}
            for metric in METRICS:
                hits = [[(v.problem_id, is_hit(v, metric, robust)) for v in seed] for seed in seeds]
                metrics[metric] = rate(hits) if metric == "exec" or timed else None
            answered = [(v.problem_id, is_hit(v, "exec", robust)) for v in everything]
            passed = {k: found for k in PASS_AT if (found := pass_rate(answered, k)) is not None}
            statuses = Counter(v.status if robust else v.functional_status for v in everything)
            rows.append(
                LevelScore(
                    level=level,
                    robust=robust,
                    metrics=metrics,
                    pass_at=passed,
                    statuses=dict(statuses.most_common()),
                )
            )
    return rows


@stage_config
class ScoreConfig:
    """What `dice score` reads and writes."""

    verdicts: tuple[str, ...] = Field(min_length=1)
    """Verdicts of the model, one file for each seed."""
    problems: str
    """problems.jsonl of the benchmark: every problem must have a verdict."""
    out: str
    """score.json to write."""
    protocol: Protocol = "paper"
    """Which of the protocols in the files is counted."""


def _repeated(values: Iterable[Hashable]) -> Any:
    """The first value that occurs more than once; None where none does."""
    return next((value for value, times in Counter(values).items() if times > 1), None)


def score(config: ScoreConfig) -> Score:
    """Run the stage. Raises DiceError where a verdict is missing, HarnessError where one is a host error."""
    watch = Stopwatch()
    problems = {problem.id: problem for problem in read_jsonl(config.problems, Problem)}
    levels = {name: problem.level for name, problem in problems.items()}
    by_seed = []
    if twice := _repeated(config.verdicts):
        raise DiceError(f"--verdicts: {twice} is named twice; its answers would count twice.")
    for path in config.verdicts:
        verdicts = [verdict for verdict in read_jsonl(path, Verdict) if verdict.protocol == config.protocol]
        if twice := _repeated((verdict.problem_id, verdict.sample) for verdict in verdicts):
            raise DiceError(f"{path}: two verdicts of {twice[0]}, sample {twice[1]}; an answer would count twice.")
        answered = {verdict.problem_id for verdict in verdicts}
        missing = sorted(set(problems) - answered)
        if missing:
            raise DiceError(
                f"{path}: {len(missing)} of {len(problems)} problems have no verdict under the protocol "
                f"{config.protocol}, the first is {missing[0]}; verify them."
            )
        if unknown := sorted(answered - set(problems)):
            raise DiceError(f"{path}: {unknown[0]} is not a problem of {config.problems}.")
        if broken := [verdict for verdict in verdicts if verdict.status == "host_error"]:
            raise HarnessError(
                f"{path}: {len(broken)} verdicts are host errors ({broken[0].message}); verify again before scoring."
            )
        by_seed.append(verdicts)
    everything = [verdict for verdicts in by_seed for verdict in verdicts]
    result = Score(
        backend=everything[0].backend,
        protocol=config.protocol,
        seeds=len(by_seed),
        problems=len(problems),
        levels=count(by_seed, levels),
        failures=dict(Counter(failure_class(verdict) for verdict in everything).most_common()),
        gpus=sorted({verdict.host.gpu for verdict in everything if verdict.host.gpu}),
    )
    write_text(config.out, result.model_dump_json(indent=2) + "\n")
    inputs = [config.problems, *config.verdicts]
    write_manifest(config.out, stage="score", spec=to_spec(config), watch=watch, inputs=inputs)
    return result


def read_score(path: str | Path) -> Score:
    """A score file."""
    return Score.model_validate_json(Path(path).read_text(encoding="utf-8"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice score`."""
    add_options(parser, ScoreConfig, "verdicts", "problems", "out", "protocol")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice score`."""
    result = score(config_from(args, ScoreConfig))
    for row in result.levels:
        executed = row.metrics["exec"]
        if row.robust and executed is not None:
            passed = [
                f", pass@{k} {100 * found.value:.1f} % ({100 * found.low:.1f} to {100 * found.high:.1f})"
                for k, found in row.pass_at.items()
                if k > 1
            ]
            print(
                f"level {row.level}: Exec {100 * executed.value:.1f} % "
                f"({100 * executed.low:.1f} to {100 * executed.high:.1f}) of {executed.n}{''.join(passed)}"
            )
    return 0
