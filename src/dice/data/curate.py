"""`dice curate`: CuKe from its sources (paper, section 3).

    dice curate --concur FILE --cudallm FILE --structural FILE --benchmark KernelBench --out results/cuke

read -> verify (through `dice verify`) -> speed-ups -> leakage -> duplicates -> threshold -> write. The rules of each
source are in `dice.data.selection`. In the output folder:

pairs.jsonl     the set of the chosen threshold
dropped.jsonl   every pair that is not in it: id, source, reason, detail
pairs.jsonl.leaks.json   counts of leaks by exam problem and rule, and the operators of the kept programs
report.json     counts per source, reason and threshold, the histogram of Table 12, duplicates, leaks, skipped steps
work/           candidates and verdicts, or the folder that `--work` names; an interrupted verification resumes there

Only verification takes long, and it resumes from its own journal; all else is computed again. Every file is written whole.
Verdicts of other settings are refused; the workflow names a folder for each state of settings, inputs and code.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from tqdm import tqdm

from dice.config import add_options, config_from, stage_config, to_spec
from dice.data.curation_report import Row, report_of, summary
from dice.data.dedup import DedupConfig, Duplicate, Text, duplicates
from dice.data.leakage.index import LeakIndex, add_benchmark_option, leak_index
from dice.data.leakage.report import DONE, LeakReport, Policy
from dice.data.leakage.texts import Leak
from dice.data.pair import OnBad, Pair
from dice.data.selection import RULES, Drop, Rule, Statistic, answer_of, passes, preference, succeeds, with_best_try
from dice.data.sources import FORMATS, data_file, read_source
from dice.errors import DiceError, HarnessError
from dice.jsonl import BadRow, read_jsonl, write_jsonl, write_text
from dice.kernels.api import (
    Backend,
    Job,
    Judging,
    Limits,
    Machine,
    Problem,
    Protocol,
    Verdict,
    VerifyConfig,
    load_problems,
    verify,
)
from dice.manifest import Stopwatch, write_manifest

PAPER_THRESHOLDS = (1.5, 2.0, 2.5)
"""Speed-ups whose set sizes are reported beside the chosen one (Table 4)."""


@stage_config
class Source:
    """One file of pairs."""

    format: str
    """Row format: one of dice.data.sources.FORMATS that has a rule (concur, cudallm, structural, pairs)."""
    path: str
    """File, folder with one data file, or `hub`."""
    rule: Rule | None = None
    """Which of its pairs enter the set; None: the paper's rule for the format."""


@stage_config
class CurateConfig:
    """Settings of `dice curate`: one set of pairs."""

    sources: tuple[Source, ...] = ()
    """Files of pairs. Of two duplicates the one is kept that `dice.data.selection.preference` puts first; among equals, that
    of the earlier source."""
    threshold: float = Field(default=2.0, ge=0)
    """Speed-up from which on a pair of a thresholded source is in the set."""
    statistic: Statistic = "median"
    """Speed-up that is compared: the `median`, or `ci_low`, the lower bound of the strict protocol's interval."""
    unmeasured: Literal["drop", "keep"] = "drop"
    """Correct pairs without a speed-up (the CPU back end measures none): drop them, or keep them at any threshold."""
    verdicts: str | None = None
    """Verdicts from an earlier `dice verify`; used where problem, try and code are the same."""
    execute: bool = True
    """Verify the pairs that have no verdict in `verdicts`; False: drop them as `not_verified` and run nothing."""
    benchmarks: tuple[str, ...] = ("mini",)
    """Benchmarks that must not leak in: `mini`, a KernelBench checkout or folder, or JSON lines of problems."""
    leakage: Policy = "drop"
    """Drop pairs that are a benchmark's problem, or only report them."""
    duplicates: Policy = "drop"
    """Drop duplicates, or only report them."""
    dedup: DedupConfig = DedupConfig()
    """When two pairs are duplicates."""
    on_bad: OnBad = "refuse"
    """Bad rows: refuse the file, or skip and report them."""
    backend: Backend = "cuda"
    """Where pairs are verified."""
    protocol: Protocol = "paper"
    """Protocol of the verification; from `verdicts`, too, only this protocol's verdicts are read."""
    judging: Judging = Judging()
    """Trials and timing; its protocols are replaced by `protocol`."""
    limits: Limits = Limits()
    """What a CUDA program may use."""
    machine: Machine = Machine()
    """Workers, GPUs and caches."""


@dataclass
class Outcome:
    """The result for all rows."""

    kept: list[Pair]
    dropped: list[dict[str, str]]
    report: dict[str, Any]
    leaks: LeakReport


# ---- read --------------------------------------------------------------------------------------------------------


def read_rows(config: CurateConfig) -> tuple[list[Row], list[BadRow]]:
    """All pairs of all sources, and the bad rows. Raises DiceError for a source that cannot be used."""
    if not config.sources:
        asked = "; ".join(f"--{name} FILE ({FORMATS[name].place})" for name in RULES)
        raise DiceError(f"curate: no source given; name at least one: {asked}.")
    rows: list[Row] = []
    bad: list[BadRow] = []
    path_of: dict[str, str] = {}
    for source in config.sources:
        if source.format not in RULES:
            raise DiceError(f"curate: format '{source.format}' has no rule (known: {', '.join(RULES)}).")
        pairs, wrong = read_source(source.format, source.path, on_bad=config.on_bad)
        bad += wrong
        for pair in pairs:
            if pair.id in path_of:
                raise DiceError(f"{source.path}: id '{pair.id}' was already used in {path_of[pair.id]}.")
            path_of[pair.id] = source.path
            rows.append(Row(pair, source.format, source.rule or RULES[source.format]))
    return rows, bad


# ---- verify ------------------------------------------------------------------------------------------------------


class Existing:
    """Verdicts of earlier runs, found by problem and try, valid for the same code and the same problem."""

    def __init__(self, path: str | None, protocol: Protocol) -> None:
        self.stale = 0
        """Verdicts that were asked for and belong to another version of the code or of its problem."""
        self._found: dict[tuple[str, int], Verdict] = {}
        for verdict in read_jsonl(path, Verdict) if path else ():
            if verdict.protocol == protocol and verdict.status != "host_error":
                self._found[verdict.problem_id, verdict.sample] = verdict

    def get(self, job: Job) -> Verdict | None:
        """The verdict on exactly this code, if there is one."""
        verdict = self._found.get((job.problem_id, job.sample))
        if verdict is None:
            return None
        same_problem = verdict.problem_sha256 in (None, job.problem_sha256)  # older files do not say
        if verdict.code_sha256 != job.code_sha256 or not same_problem:
            self.stale += 1
            return None
        return verdict


def _job(row: Row, attempt: int) -> Job:
    code = answer_of(row.pair, attempt)
    return Job(problem_id=row.pair.id, problem_code=row.pair.pytorch_code, sample=attempt, code=code)


def verify_rows(rows: Sequence[Row], config: CurateConfig, work: Path, progress: bool) -> int:
    """Give every row its verdicts: try after try, until one succeeds or its rule allows no further one.

    Returns the number of stale verdicts. Raises HarnessError when pairs failed because of the machine.
    """
    existing = Existing(config.verdicts, config.protocol)
    for attempt in range(max((row.rule.attempts for row in rows if row.rule.verify), default=0)):
        todo: list[Row] = []
        for row in rows:
            done = any(succeeds(one, row.rule, config.statistic) for one in row.verdicts.values())
            if not row.rule.verify or attempt >= row.rule.attempts or done:
                continue
            verdict = existing.get(_job(row, attempt))
            if verdict is not None:
                row.verdicts[attempt] = verdict
            elif config.execute:
                todo.append(row)
        if todo:
            _verify_round(todo, attempt, config, work, progress)
    return existing.stale


def _verify_round(todo: Sequence[Row], attempt: int, config: CurateConfig, work: Path, progress: bool) -> None:
    """One verdict for each row. A rule without a threshold asks for no time: a GPU times one pair after the other."""
    for timed, name in ((True, f"try-{attempt}"), (False, f"try-{attempt}.untimed")):
        rows = [row for row in todo if (row.rule.threshold is not None) == timed]
        if rows:
            changes = {"protocols": (config.protocol,), "measure_time": timed and config.judging.measure_time}
            judging = Judging(**to_spec(config.judging) | changes)
            _verify_part(rows, attempt, judging, config, work / name, progress)


def _verify_part(
    todo: Sequence[Row], attempt: int, judging: Judging, config: CurateConfig, work: Path, progress: bool
) -> None:
    candidates, out = f"{work}.candidates.jsonl", f"{work}.verdicts.jsonl"
    fields = {"problem_id", "problem_code", "sample", "code"}
    write_jsonl(candidates, (_job(row, attempt).model_dump(include=fields) for row in todo))
    found = verify(
        VerifyConfig(
            candidates=candidates,
            out=out,
            backend=config.backend,
            judging=judging,
            limits=config.limits,
            machine=config.machine,
        ),
        progress,
    )
    failed = [verdict for verdict in found if verdict.status == "host_error"]
    if failed:
        raise HarnessError(
            f"{len(failed)} of {len(found)} pairs could not be verified because of the machine "
            f"(first: {failed[0].problem_id}: {failed[0].message}); run the same command again to retry them."
        )
    by_id = {verdict.problem_id: verdict for verdict in found}
    for row in todo:
        row.verdicts[attempt] = by_id[row.pair.id]


# ---- decide ------------------------------------------------------------------------------------------------------


def _take_best_tries(rows: Sequence[Row], statistic: Statistic) -> None:
    for row in rows:
        decided = with_best_try(row.pair, row.verdicts, row.rule, statistic)
        if isinstance(decided, Drop):
            row.drop = decided
        else:
            row.pair = decided


def _leaks(rows: Sequence[Row], index: LeakIndex, policy: Policy, progress: bool) -> dict[str, Leak]:
    found: dict[str, Leak] = {}
    for row in tqdm(rows, desc="leakage", unit="pair", disable=not progress):
        leak = index.check(row.pair.pytorch_code)
        if leak is not None:
            found[row.pair.id] = leak
            if policy == "drop":
                row.drop = Drop("leakage", f"{leak.kind} of {leak.problem_id}: {leak.evidence}")
    return found


def _deduplicate(rows: Sequence[Row], config: CurateConfig, progress: bool) -> list[Duplicate]:
    ordered = sorted(rows, key=lambda row: preference(row.pair, row.rule))  # stable: sources stay in their order
    shown = tqdm(ordered, desc="duplicates", unit="pair", disable=not progress)
    texts = (Text(row.pair.id, row.pair.pytorch_code, row.pair.cuda_code, row.rule.near_duplicates) for row in shown)
    found = duplicates(texts, config.dedup)
    if config.duplicates == "drop":
        by_id = {row.pair.id: row for row in rows}
        for one in found:
            by_id[one.id].drop = Drop(f"{one.kind}_duplicate", f"of {one.of}, similarity {one.similarity:g}")
    return found


def _alive(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.drop is None]


def decide(rows: Sequence[Row], problems: Sequence[Problem], config: CurateConfig, progress: bool = False) -> Outcome:
    """Everything after verification, without files and processes; writes its decisions into the rows."""
    _take_best_tries(rows, config.statistic)
    correct = _alive(rows)
    keep_unmeasured = config.unmeasured == "keep"
    thresholds = sorted({*PAPER_THRESHOLDS, config.threshold})
    for row in correct:  # what no threshold admits needs no comparison with anything
        row.drop = passes(row.pair, row.rule, thresholds[0], keep_unmeasured)
    index = leak_index(problems)
    leaks = _leaks(_alive(rows), index, config.leakage, progress) if problems else {}
    repeated = _deduplicate(_alive(rows), config, progress)
    pool = _alive(rows)
    inside = {
        threshold: [row for row in pool if passes(row.pair, row.rule, threshold, keep_unmeasured) is None]
        for threshold in thresholds
    }
    for row in pool:
        row.drop = passes(row.pair, row.rule, config.threshold, keep_unmeasured)
    report = report_of(rows, correct, inside, config.threshold)
    report["leakage"] = {
        "policy": config.leakage,
        "benchmarks": list(config.benchmarks),
        "problems": len(problems),
        "kinds": dict(Counter(leak.kind for leak in leaks.values())),
        "found": [{"id": name, **vars(leak)} for name, leak in leaks.items()],
    }
    report["duplicates"] = {
        "policy": config.duplicates,
        "parameters": to_spec(config.dedup),
        "kinds": dict(Counter(one.kind for one in repeated)),
        "found": [vars(one) for one in repeated],
    }
    dropped = [
        {"id": row.pair.id, "source": row.source, "reason": row.drop.reason, "detail": row.drop.detail}
        for row in rows
        if row.drop is not None
    ]
    return Outcome(
        [row.pair for row in _alive(rows)],
        dropped,
        report,
        index.report("pairs.jsonl", DONE[config.leakage], config.benchmarks, leaks),
    )


# ---- stage -------------------------------------------------------------------------------------------------------


def curate(config: CurateConfig, out: str | Path, progress: bool = True, work: str | Path | None = None) -> Outcome:
    """Make the set in the folder `out`; verification resumes in `work`, None: `out`/work.

    Raises DiceError for sources, verdicts or benchmarks that cannot be used and for a missing package, HarnessError for a
    machine that cannot verify.
    """
    watch, out = Stopwatch(), Path(out)
    duplicates((), config.dedup)  # raises where datasketch is missing: before hours of verification, not after them
    rows, bad = read_rows(config)
    files = [data_file(source.format, source.path) for source in config.sources]
    problems = [problem for name in config.benchmarks for problem in load_problems(name, config.backend)]
    stale = verify_rows(rows, config, out / "work" if work is None else Path(work), progress)
    outcome = decide(rows, problems, config, progress)
    outcome.report |= {"bad_rows": [str(row) for row in bad], "stale_verdicts": stale}
    write_jsonl(out / "pairs.jsonl", outcome.kept)
    write_jsonl(out / "dropped.jsonl", outcome.dropped)
    outcome.leaks.write(out / "pairs.jsonl")
    write_text(out / "report.json", json.dumps(outcome.report, indent=2) + "\n")
    write_manifest(
        out / "pairs.jsonl",
        stage="curate",
        spec=to_spec(config),
        watch=watch,
        inputs=[*files, *([config.verdicts] if config.verdicts else [])],
        extra={name: outcome.report[name] for name in ("size", "sizes_by_threshold")},
    )
    return outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice curate`."""
    for name in RULES:
        help_text = f"{FORMATS[name].title}: a file" + (", or 'hub'" if FORMATS[name].hub else "")
        parser.add_argument(f"--{name}", action="append", default=[], metavar="FILE", help=help_text)
    add_benchmark_option(parser, "its problems must not be among the pairs")
    add_options(parser, CurateConfig, "threshold", "verdicts", "backend", "protocol", "on_bad", no_execute="execute")
    parser.add_argument("--quiet", action="store_true", help="no progress bars")
    parser.add_argument("--out", required=True, help="folder to write into")
    parser.add_argument("--work", metavar="DIR", help="where an interrupted verification resumes (default: OUT/work)")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice curate`; source options replace the config's sources."""
    sources = [{"format": name, "path": path} for name in RULES for path in getattr(args, name)]
    config = config_from(args, CurateConfig, {"sources": sources or None})
    outcome = curate(config, args.out, progress=not args.quiet, work=args.work)
    print("\n".join(summary(outcome.report)))
    return 0
