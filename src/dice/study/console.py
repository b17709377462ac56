"""What a run of the workflow prints: one line as each job begins, with its stage, the run's progress and the time left.

A logger plugin of Snakemake (`logger: dice` in the profiles). Snakemake's own listing of each job, with a hundred input
files, goes to .snakemake/log only. In a dry run a line says why the job would run, and the last lines what all of them cost.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from logging import INFO, LogRecord
from time import monotonic, strftime
from typing import Any

from snakemake.logging import show_logs
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from dice.study.memory import NO_GPU, GpuMemory
from dice.study.progress import Progress, in_words
from dice.study.units import RELEASED, SERVED, asked

_CHATTER = (
    "Building DAG of jobs", "Using shell:", "Singularity containers: ignored", "Select jobs to execute", "Execute ",
    "Removing temporary output", "Group jobs: inactive", "Assuming unrestricted shared filesystem", "Reasons:",
)  # fmt: skip
"""Beginnings of Snakemake's lines that tell a user nothing."""
_FOLLOWS = "Input files updated by another job"
"""The reason that Snakemake gives for every job that follows another."""


def _job(facts: Mapping[str, Any]) -> str:
    """`sft: train 8B-sft on pairs`; the rule alone where it has no message."""
    return ": ".join(filter(None, (facts["rule_name"], facts["rule_msg"])))


@dataclass(frozen=True)
class Cost:
    """What planned jobs are expected to take together; estimates (`dice.study.costs`, `dice.study.memory`)."""

    hours: float = 0.0
    gigabytes: float = 0.0
    gpu: GpuMemory = NO_GPU

    def __add__(self, other: Cost) -> Cost:
        """Hours and gigabytes add up; of a GPU's memory the job that takes most counts."""
        return Cost(self.hours + other.hours, self.gigabytes + other.gigabytes, max(self.gpu, other.gpu))

    @property
    def columns(self) -> str:
        """GPU-hours, gigabytes on disk, GiB of a GPU (with a plus where only weights are counted); empty where zero."""
        hours = f"{self.hours:,.1f}" if self.hours else ""
        gigabytes = f"{self.gigabytes:,.0f}" if self.gigabytes else ""
        gpu = f"{self.gpu.gib:,.1f}{'+' * self.gpu.weights_alone}" if self.gpu.gib else ""
        return f"{hours:>11}{gigabytes:>11}{gpu:>9}"


_COLUMNS = f"{'GPU-hours':>11}{'gigabytes':>11}{'GPU GiB':>9}"


def cost_table(jobs: Mapping[str, int], costs: Mapping[str, Cost]) -> str:
    """Number and cost of the jobs of each stage, and the totals."""
    rows = [(rule, number, costs.get(rule, Cost())) for rule, number in jobs.items()]
    rows.append(("total", sum(jobs.values()), sum(costs.values(), Cost())))
    lines = [f"{name:<24}{number:>6}{cost.columns}" for name, number, cost in rows]
    return "\n".join(line.rstrip() for line in (f"{'stage':<24}{'jobs':>6}{_COLUMNS}", *lines))


def row_table(costs: Mapping[str, Cost], licences: Mapping[str, str]) -> str:
    """Cost of each model's planned jobs, and the licence of what is fetched for it."""
    lines = [f"{model:<38}{cost.columns}  {licences.get(model, '')}" for model, cost in costs.items()]
    return "\n".join(line.rstrip() for line in (f"{'model':<38}{_COLUMNS}  licence", *lines))


def _model(unit: str) -> str:
    """The model of a unit: one row for its checkpoint, its server and all its exams."""
    return asked(unit)[0].removeprefix(RELEASED).removeprefix(SERVED)


class LogHandler(LogHandlerBase):
    """Prints to stderr, a plan to stdout, as Snakemake does."""

    @property
    def writes_to_stream(self) -> bool:
        """Instead of Snakemake's own lines."""
        return True

    @property
    def writes_to_file(self) -> bool:
        """.snakemake/log is Snakemake's."""
        return False

    @property
    def has_filter(self) -> bool:
        """Snakemake's is used, so that `--quiet` works."""
        return False

    @property
    def has_formatter(self) -> bool:
        """Snakemake's is used for what has no line here."""
        return False

    @property
    def needs_rulegraph(self) -> bool:
        """The jobs are enough."""
        return False

    def __post_init__(self) -> None:
        self._stream = sys.stdout if self.common_settings.stdout else sys.stderr
        self._jobs: dict[str, int] = {}
        self._progress = Progress({}, {}, monotonic())
        self._costs: Mapping[str, Mapping[str, tuple[float, float]]] = {}
        self._memory: Mapping[str, Mapping[str, GpuMemory]] = {}
        self._licences: dict[str, str] = {}
        self._planned: dict[str, Cost] = {}
        self._rows: dict[str, Cost] = {}

    def emit(self, record: LogRecord) -> None:
        """Print the line of a record that has one."""
        try:
            if text := self._text(record):
                print(text, file=self._stream, flush=True)
        except Exception:  # noqa: BLE001  as the handlers of the standard library do
            self.handleError(record)

    def _text(self, record: LogRecord) -> str | None:
        facts: dict[str, Any] = vars(record)
        match facts.get("event"):
            case None if "job_seconds" in facts:
                return self._starts(record.msg, facts["job_seconds"])
            case None if "job_costs" in facts:
                self._costs, self._memory = facts["job_costs"], facts["gpu_memory"]
                self._licences = {_model(unit): licence for unit, licence in facts["licences"].items()}
                return str(record.msg)
            case None:
                chatter = record.levelno == INFO and str(record.msg).startswith(_CHATTER)
                return None if chatter else self.format(record)
            case LogEvent.RUN_INFO:
                self._jobs = {rule: n for rule, n in facts["stats"].items() if rule != "total"}
                if self.common_settings.dryrun and self._planned:
                    tables = cost_table(self._jobs, self._planned), row_table(self._rows, self._licences)
                    return "\n\n".join(tables)
                return self.format(record) if self.common_settings.dryrun else None
            case LogEvent.JOB_INFO:
                return self._plan(facts) if self.common_settings.dryrun else self._begins(facts)
            case LogEvent.JOB_FINISHED:
                self._progress.finish(facts["job_id"])
                return None
            case LogEvent.PROGRESS if facts["done"] == facts["total"]:
                return f"{strftime('%H:%M:%S')}  {facts['done']} of {facts['total']} done"
            case LogEvent.JOB_ERROR:
                return self._failed(facts)
            case LogEvent.ERROR if facts.get("exception") == "RuleException" and "CalledProcessError" in record.msg:
                return None  # the job's log follows, and says more than its whole command
            case LogEvent.ERROR | LogEvent.GROUP_ERROR | LogEvent.SHELLCMD | LogEvent.DEBUG_DAG:
                return self.format(record)
            case _:
                return None

    def _plan(self, facts: dict[str, Any]) -> str:
        rule, unit = facts["rule_name"], (facts.get("wildcards") or {}).get("unit", "")
        found, gpu = self._costs.get(rule, {}).get(unit), self._memory.get(rule, {}).get(unit)
        if found or gpu:
            cost = Cost(*(found or (0.0, 0.0)), gpu or NO_GPU)
            for sums, name in ((self._planned, rule), (self._rows, _model(unit))):
                sums[name] = sums.get(name, Cost()) + cost
        reasons = [part for part in facts["reason"].split("; ") if not part.startswith(_FOLLOWS)]
        return f"{_job(facts)}  [{'; '.join(reasons)}]"

    def _starts(self, name: str, job_seconds: Mapping[str, float]) -> str:
        now = monotonic()
        self._progress = Progress(self._jobs, job_seconds, now)
        jobs = f"{self._progress.total} job{'s' * (self._progress.total > 1)}"
        return f"{name}: {jobs}, about {in_words(self._progress.left_s(now))}"

    def _begins(self, facts: dict[str, Any]) -> str:
        now, progress = monotonic(), self._progress
        progress.begin(facts["jobid"], facts["rule_name"], now)
        place = f"{progress.begun:{len(str(progress.total))}} of {progress.total}"
        left = f"about {in_words(progress.left_s(now))} left"
        return f"{strftime('%H:%M:%S')}  {place}  {left:<20}  {_job(facts)}"

    def _failed(self, facts: dict[str, Any]) -> str:
        lines = [f"{facts['rule_name']} failed: {', '.join(facts['log']) or 'it has no log'}"]
        if self.common_settings.show_failed_logs:
            lines += show_logs(facts["log"])
        return "\n".join(lines)
