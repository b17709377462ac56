"""`dice verify`: judge a folder or file of candidates and write one verdict per candidate and protocol.

    dice verify --problems DIR --candidates DIR_OR_JSONL --backend cuda --protocol paper --out verdicts.jsonl

Verdicts are appended to `OUT.partial` as they come, so a killed run resumes without losing or repeating one; the
finished file is sorted by problem, sample and protocol, whatever order the workers finished in. Beside it: a manifest
and, for problems that have a level and number, KernelBench's `eval_results.json`. The exit code is 0 whenever the
harness worked, whatever the kernels did; 3 when a candidate was left with a `host_error` (run again to retry those).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field
from tqdm import tqdm

from dice.config import add_options, config_from, spec_hash, stage_config, to_spec
from dice.errors import DiceError, HarnessError
from dice.jsonl import read_jsonl
from dice.kernels.page.one_kernel import Files, judge, show, watch
from dice.kernels.pool.pool import start_importing
from dice.kernels.pool.workers import Machine, open_pool
from dice.kernels.problems.folder import load_problem_folder
from dice.kernels.problems.mini import load_mini
from dice.kernels.problems.problem import Problem
from dice.kernels.records.candidate_files import make_jobs, read_candidates
from dice.kernels.records.failed import failed_verdicts
from dice.kernels.records.job import PROTOCOLS, Job, Judging, Limits
from dice.kernels.records.kernelbench_results import write_eval_results
from dice.kernels.records.verdict import Backend, Verdict
from dice.kernels.records.verdict_store import VerdictStore
from dice.manifest import Stopwatch, write_manifest


@stage_config
class VerifyConfig:
    """One run of the verifier."""

    candidates: str
    """KernelBench run folder, or JSON lines with `problem_id` and `text` (a whole answer) or `code`."""
    out: str
    """JSON lines of verdicts to write."""
    problems: str | None = None
    """Folder of problem files, JSON lines of problems, or `mini`; None: each candidate brings its own problem."""
    shards: int = Field(default=1, ge=1)
    """Jobs that share the candidates: this one takes every `shards`-th, and `dice gather` joins their verdicts."""
    shard: int = Field(default=0, ge=0)
    """Number of this job among them, from 0: the candidate that it begins with."""
    backend: Backend = "cuda"
    """Where candidates run; `cpu` executes CUDA kernels on the CPU and reports no speed."""
    judging: Judging = Judging()
    """Protocols, trials, timing."""
    limits: Limits = Limits()
    """What a candidate may use."""
    machine: Machine = Machine()
    """Workers, GPUs and caches: nothing here may change a verdict."""


def load_problems(source: str, backend: Backend) -> list[Problem]:
    """Problems from `mini` (at the back end's size), a folder in KernelBench's layout, or JSON lines of Problem."""
    if source == "mini":
        return load_mini("cpu" if backend == "cpu" else "gpu")
    if source.endswith(".jsonl"):
        return list(read_jsonl(source, Problem))
    return load_problem_folder(source)


def own_share(jobs: list[Job], config: VerifyConfig) -> list[Job]:
    """The jobs of this shard. Raises DiceError where there is no such shard, or none is left for it."""
    if config.shard >= config.shards:
        raise DiceError(f"shard {config.shard} of {config.shards}: count from 0.")
    if len(jobs) < config.shards > 1:
        raise DiceError(f"{config.candidates}: fewer candidates than {config.shards} shards; lower `shards`.")
    return jobs[config.shard :: config.shards]


def verify(config: VerifyConfig, progress: bool = True) -> list[Verdict]:
    """Run the stage; returns all verdicts of the finished file.

    Raises DiceError for input that cannot be used, HarnessError for a machine that cannot do the work.
    """
    stopwatch = Stopwatch()
    problems = load_problems(config.problems, config.backend) if config.problems else None
    jobs = own_share(make_jobs(read_candidates(config.candidates), problems), config)
    spec = to_spec(config)
    settings = spec_hash({key: spec[key] for key in ("backend", "judging", "limits")})
    store = VerdictStore(config.out, settings, len(config.judging.protocols))
    todo = store.missing(jobs)
    isolation: dict[str, list[str]] = {}
    try:
        if todo:
            isolation = verify_jobs(todo, config, store.add, progress)
        verdicts = store.finish(jobs)
    except OSError as error:
        raise HarnessError(f"{config.out}: {error.strerror}; the verdicts so far are in {store.partial}.") from error
    finally:
        store.close()
    inputs = [path for path in (config.candidates, config.problems or "") if Path(path).is_file()]
    extra = {"settings": settings, "already_done": len(jobs) - len(todo), "statuses": count_statuses(verdicts)}
    extra["isolation"] = isolation
    write_manifest(config.out, stage="verify", spec=spec, watch=stopwatch, inputs=inputs, extra=extra)
    write_eval_results(Path(config.out).with_suffix(".kernelbench"), verdicts)
    store.discard_journal()
    return verdicts


def verify_jobs(
    jobs: Sequence[Job], config: VerifyConfig, take: Callable[[list[Verdict]], None], progress: bool
) -> dict[str, list[str]]:
    """Call `take` with the verdicts of each job as they are ready. Returns the layers of isolation (`Pool.isolation`)."""
    counts: Counter[str] = Counter()
    with_code = [job for job in jobs if job.code is not None]
    with tqdm(total=len(jobs), desc="verify", unit="kernel", file=sys.stderr, disable=not progress) as bar:

        def took(verdicts: list[Verdict]) -> None:
            take(verdicts)
            counts[verdicts[0].status] += 1
            bar.set_postfix_str(", ".join(f"{status} {n}" for status, n in counts.most_common(4)), refresh=False)
            bar.update()

        for job in jobs:
            if job.code is None:
                took(failed_verdicts(job, "no_code", "extract", job.no_code_reason, config.judging, config.backend))
        if not with_code:
            return {}

        with open_pool(config.backend, config.judging, config.limits, config.machine, len(with_code)) as pool:
            for verdicts in pool.run(with_code):
                took(verdicts)
            return pool.isolation


def count_statuses(verdicts: Sequence[Verdict]) -> dict[str, dict[str, int]]:
    """Protocol -> status -> number, most frequent first."""
    counts: dict[str, Counter[str]] = {}
    for verdict in verdicts:
        counts.setdefault(verdict.protocol, Counter())[verdict.status] += 1
    return {protocol: dict(counter.most_common()) for protocol, counter in counts.items()}


def summary_lines(verdicts: Sequence[Verdict]) -> list[str]:
    """The counts by status, for printing."""
    lines = []
    for protocol, counts in count_statuses(verdicts).items():
        total = sum(counts.values())
        lines.append(f"{protocol}: {total} candidates")
        lines += [f"  {n:6d}  {100 * n / total:5.1f} %  {status}" for status, n in counts.items()]
    return lines


def add_judging_options(parser: argparse.ArgumentParser, config: type, *names: str, **named: str) -> None:
    """Options of a command whose `config` has `judging` and `machine`: fields `names`, options `named` (name to field), and
    those of how candidates are judged. `judged_protocols` reads `--protocol`."""
    add_options(
        parser,
        config,
        *names,
        trials="judging.correctness_trials",
        **named,
        no_timing="judging.measure_time",
        jobs="machine.jobs",
        builders="machine.builders",
        cache="machine.cache",
        require_isolation="machine.require_isolation",
    )
    parser.add_argument("--protocol", choices=list(PROTOCOLS), help="protocols to report (default: paper)")


def judged_protocols(args: argparse.Namespace) -> dict[str, Any]:
    """The setting that `--protocol` stands for, for `config_from`; None: what the config says."""
    return {"judging.protocols": PROTOCOLS.get(args.protocol)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice verify`."""
    add_judging_options(
        parser,
        VerifyConfig,
        *("candidates", "problems", "out", "backend"),
        seed="judging.seed",
        conditions="judging.conditions",
    )
    parser.add_argument(
        "--gpus", dest="machine.gpus", metavar="LIST", type=_parts, help="GPU indices, e.g. 0,1 (default: all)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    one = parser.add_argument_group("one kernel", "prints a page; exit code 0: correct, 1: not, 2: no verdict")
    one.add_argument("kernel", nargs="?", help="file with ModelNew, in the place of --candidates")
    one.add_argument("--reference", metavar="FILE", help="its problem: a file with Model, get_inputs, get_init_inputs")
    one.add_argument("--json", action="store_true", help="the page as a JSON object")
    one.add_argument("--watch", action="store_true", help="once more whenever one of the two files is saved")


def _parts(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


@contextlib.contextmanager
def orderly_end() -> Iterator[None]:
    """End on SIGTERM, which batch systems send, as on Ctrl-C: workers end and temporary folders are removed."""

    def leave(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: what follows is the end
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def one_kernel(args: argparse.Namespace) -> int:
    """The page on one kernel; 0 where it is correct, 1 where it is not. Raises DiceError where there is no verdict."""
    if args.reference is None or args.candidates or args.problems or args.out:
        raise DiceError(
            f"{args.kernel}: name its problem with --reference, without --problems, --candidates and --out."
        )
    files = Files(Path(args.kernel), Path(args.reference))
    files.job()  # before the seconds that the workers take
    given: dict[str, Any] = {"candidates": args.kernel, "out": os.devnull, "judging.explain": True}
    given["judging.protocols"] = PROTOCOLS[args.protocol or "both"]
    config = config_from(args, VerifyConfig, given)
    start_importing()
    try:
        with orderly_end(), open_pool(config.backend, config.judging, config.limits, config.machine, 1) as pool:
            if args.watch:
                return watch(files, pool, args.json)
            page = judge(files, pool)
    except HarnessError as error:
        raise DiceError(str(error)) from error  # 3 means that verdicts are missing from a file
    show(page, args.json)
    return int(not page.correct)


def refuse_host_errors(verdicts: list[Verdict], out: str) -> None:
    """Raise HarnessError where a candidate was left without a verdict.

    It tells the first message itself: a workflow deletes the file of a failed job.
    """
    messages = [verdict.message for verdict in verdicts if verdict.status == "host_error"]
    if messages:
        first = " ".join(messages[0].split())
        raise HarnessError(f"{len(messages)} verdicts are host errors (in {out}; the first: {first}); run again.")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice verify`."""
    if args.kernel is not None:
        return one_kernel(args)
    if args.reference or args.json or args.watch:
        raise DiceError(
            "--reference, --json and --watch are for one kernel: dice verify kernel.py --reference model.py."
        )
    config = config_from(args, VerifyConfig, judged_protocols(args))
    with orderly_end():
        verdicts = verify(config, progress=not args.quiet)
    print("\n".join(summary_lines(verdicts)))
    refuse_host_errors(verdicts, config.out)
    return 0
