"""What a run of the workflow prints: one line as each job begins, with its stage, the run's progress and the time left.

A logger of Snakemake's (`logger: dice` in the profiles). Snakemake's own listing of each job, with a hundred input files,
goes to .snakemake/log only. In a dry run a line says why the job would run, and the last lines what all of them cost.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from logging import INFO, LogRecord
from time import monotonic, strftime
from typing import Any

from snakemake.logging import show_logs
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from dice.study.progress import Progress, in_words
from dice.study.units import RELEASED, SERVED

_CHATTER = (
    "Building DAG of jobs", "Using shell:", "Singularity containers: ignored", "Select jobs to execute", "Execute ",
    "Removing temporary output", "Group jobs: inactive", "Assuming unrestricted shared filesystem", "Reasons:",
)  # fmt: skip
"""Beginnings of Snakemake's lines that tell a user nothing."""
_FOLLOWS = "Input files updated by another job"
"""The reason of every job behind another one."""


def _job(facts: Mapping[str, Any]) -> str:
    """`sft: train 8B-sft on pairs`; the rule alone where it has no message."""
    return ": ".join(filter(None, (facts["rule_name"], facts["rule_msg"])))


def _add(costs: dict[str, tuple[float, float]], name: str, more: tuple[float, float]) -> None:
    hours, gigabytes = costs.get(name, (0.0, 0.0))
    costs[name] = (hours + more[0], gigabytes + more[1])


def cost_table(jobs: Mapping[str, int], costs: Mapping[str, tuple[float, float]]) -> str:
    """Jobs, GPU-hours and gigabytes on disk by stage, and their sums; estimates (`costs` of the scale, sizes of models)."""
    rows = [("stage", "jobs", "GPU-hours", "gigabytes")]
    sums = [sum(cost[part] for cost in costs.values()) for part in (0, 1)]
    for name, number, (hours, gigabytes) in (
        *((rule, n, costs.get(rule, (0.0, 0.0))) for rule, n in jobs.items()),
        ("total", sum(jobs.values()), sums),
    ):
        rows.append((name, str(number), f"{hours:,.1f}" if hours else "", f"{gigabytes:,.0f}" if gigabytes else ""))
    return "\n".join(
        f"{name:<24}{number:>6}{hours:>12}{gigabytes:>12}".rstrip() for name, number, hours, gigabytes in rows
    )


def row_table(costs: Mapping[str, tuple[float, float]], facts: Mapping[str, tuple[float, str]]) -> str:
    """What each released model takes: GPU-hours, gigabytes to load, GiB of a GPU for its weights alone, and its licence."""
    lines = [f"{'released model':<34}{'GPU-hours':>10}{'gigabytes':>10}{'GPU GiB':>9}  licence"]
    for model, (hours, gigabytes) in costs.items():
        weights, licence = facts[model]
        parts = (f"{hours:,.1f}" if hours else "", f"{gigabytes:,.0f}" if gigabytes else "", f"{weights:,.0f}")
        lines.append(f"{model:<34}{parts[0]:>10}{parts[1]:>10}{parts[2]:>9}  {licence}")
    return "\n".join(lines)


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
        self._facts: Mapping[str, tuple[float, str]] = {}
        self._planned: dict[str, tuple[float, float]] = {}
        self._rows: dict[str, tuple[float, float]] = {}

    def emit(self, record: LogRecord) -> None:
        """Print what the record is worth."""
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
                self._costs, self._facts = facts["job_costs"], facts.get("hub_facts", {})
                return str(record.msg)
            case None:
                chatter = record.levelno == INFO and str(record.msg).startswith(_CHATTER)
                return None if chatter else self.format(record)
            case LogEvent.RUN_INFO:
                self._jobs = {rule: n for rule, n in facts["stats"].items() if rule != "total"}
                if self.common_settings.dryrun and self._planned:
                    rows = [row_table(self._rows, self._facts)] if self._rows else []
                    return "\n\n".join([cost_table(self._jobs, self._planned), *rows])
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
        if found := self._costs.get(rule, {}).get(unit):
            _add(self._planned, rule, found)
            model = unit.removeprefix(RELEASED).removeprefix(SERVED)
            if model in self._facts:
                _add(self._rows, model, found)
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
