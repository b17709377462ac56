"""What a run prints: a line for each job, how far the run is, and what went wrong."""

from __future__ import annotations

import logging
import re

import pytest
from snakemake.logging import DefaultFormatter
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry
from snakemake_interface_logger_plugins.registry.plugin import Plugin
from snakemake_interface_logger_plugins.tests import MockOutputSettings

from dice.study.console import LogHandler
from dice.study.memory import GpuMemory
from dice.study.progress import OTHER_S, Progress, in_words


def test_what_was_expected_is_left_at_the_start_and_nothing_at_the_end():
    progress = Progress({"sft": 2, "table": 1}, {"sft": 100.0}, now_s=50.0)
    assert (progress.total, progress.begun) == (3, 0)
    assert progress.left_s(50.0) == 200 + OTHER_S
    for job, rule in enumerate(("sft", "sft", "table")):
        progress.begin(job, rule, 50.0)
        progress.finish(job)
    assert progress.begun == 3
    assert progress.left_s(60.0) == 0


def test_a_run_that_is_twice_as_fast_has_half_as_long_to_go():
    progress = Progress({"sft": 100}, {"sft": 100.0}, now_s=0.0)
    for job in range(50):
        progress.begin(job, "sft", 0.0)
        progress.finish(job)
    assert progress.left_s(5000.0) == pytest.approx(5000, rel=0.01)
    assert progress.left_s(2500.0) == pytest.approx(2500, rel=0.02)


def test_a_running_job_counts_as_far_as_it_is_and_one_that_is_tried_again_once():
    progress = Progress({"sft": 2}, {"sft": 100.0}, now_s=0.0)
    progress.begin(7, "sft", 0.0)
    assert progress.left_s(60.0) == 140
    assert progress.left_s(500.0) > 100, "the other job is still to come"
    progress.begin(7, "sft", 500.0)
    assert progress.begun == 1


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "10 s"),
        (44, "50 s"),
        (89, "90 s"),
        (100, "2 min"),
        (3500, "58 min"),
        (3600, "1 h 0 min"),
        (8000, "2 h 10 min"),
    ],
)
def test_times_are_as_exact_as_an_estimate_deserves(seconds, words):
    assert in_words(seconds) == words


class Console:
    """The handler as Snakemake sets it up, and what it prints."""

    def __init__(self, capsys, **settings) -> None:
        common = MockOutputSettings()
        vars(common).update(settings)
        self._handler = LogHandler(common, None)
        self._handler.setFormatter(DefaultFormatter(set(), common.show_failed_logs))
        self._capsys = capsys

    def __call__(self, event: LogEvent | None, msg: str = "", level: int = logging.INFO, **facts) -> str:
        record = logging.LogRecord("snakemake", level, "", 0, msg, (), None)
        vars(record).update(facts, event=event)
        self._handler.handle(record)
        out, err = self._capsys.readouterr()
        return out + err


@pytest.fixture
def job():
    source = {"input": [f"src/dice/m{k}.py" for k in range(100)], "reason": "Missing output files: models/8B-sft"}
    return {"jobid": 4, "rule_name": "sft", "rule_msg": "train 8B-sft on pairs", "log": ["sft.log"], **source}


def test_a_job_is_one_line_with_stage_progress_and_time_left(capsys, job, monkeypatch):
    monkeypatch.setattr("dice.study.console.monotonic", lambda: 0.0)
    console = Console(capsys)
    assert console(LogEvent.RUN_INFO, "table", stats={"sft": 2, "table": 1, "total": 3}) == ""
    assert console(None, "scale tiny", job_seconds={"sft": 300.0}) == "scale tiny: 3 jobs, about 10 min\n"
    line = r"\d\d:\d\d:\d\d  %d of 3  about %s left +%s\n"
    assert re.fullmatch(line % (1, "10 min", "sft: train 8B-sft on pairs"), console(LogEvent.JOB_INFO, **job))
    assert console(LogEvent.JOB_FINISHED, job_id=4) == ""
    assert console(LogEvent.PROGRESS, done=1, total=3) == ""
    assert console(LogEvent.PROGRESS, done=3, total=3).endswith("  3 of 3 done\n")
    table = job | {"jobid": 5, "rule_name": "table", "rule_msg": None}
    assert re.fullmatch(line % (2, "30 s", "table"), console(LogEvent.JOB_INFO, **table))


def test_a_plan_says_why_a_job_would_run(capsys, job):
    console = Console(capsys, dryrun=True)
    assert "Job stats" in console(LogEvent.RUN_INFO, "Job stats:", stats={"total": 1})
    reason = "Updated input files: a; Input files updated by another job: b, c"
    line = console(LogEvent.JOB_INFO, **job | {"reason": reason})
    assert line == "sft: train 8B-sft on pairs  [Updated input files: a]\n"


def test_a_plan_ends_in_what_it_costs(capsys, job):
    """Only what is planned counts: one of two models, and of the other its verdicts alone."""
    console = Console(capsys, dryrun=True)
    costs = {
        "sft": {"8B-sft": (22.4, 112.0), "4B-sft": (11.2, 56.0)},
        "verify": {"8B-sft": (0.2, 0.0), "4B-sft": (0.5, 0.0)},
    }
    facts = {"job_costs": costs, "gpu_memory": {"sft": {"8B-sft": GpuMemory(39.3)}}, "licences": {}}
    assert console(None, "scale paper, all tables", **facts) == "scale paper, all tables\n"
    stats = {"sft": 1, "verify": 3, "table": 1, "total": 5}
    assert "Job stats" in console(LogEvent.RUN_INFO, "Job stats:", stats=stats)
    planned = [("sft", "8B-sft"), ("verify", "8B-sft"), ("verify", "8B-sft"), ("verify", "4B-sft"), ("table", None)]
    for rule, unit in planned:
        console(LogEvent.JOB_INFO, **job | {"rule_name": rule, "wildcards": {"unit": unit} if unit else {}})
    lines = [line.split() for line in console(LogEvent.RUN_INFO, "Job stats:", stats=stats).splitlines()]
    assert lines == [
        ["stage", "jobs", "GPU-hours", "gigabytes", "GPU", "GiB"],
        ["sft", "1", "22.4", "112", "39.3"],
        ["verify", "3", "0.9"],  # 2 x 0.2 + 0.5
        ["table", "1"],
        ["total", "5", "23.3", "112", "39.3"],
        [],
        ["model", "GPU-hours", "gigabytes", "GPU", "GiB", "licence"],
        ["8B-sft", "22.8", "112", "39.3"],  # 22.4 + 2 x 0.2
        ["4B-sft", "0.5"],
    ]


def test_a_plan_says_what_each_row_takes_and_its_licence(capsys, job):
    """One line for checkpoint, seeds and exams; of a GPU's memory the most, with a plus where it is weights alone."""
    console = Console(capsys, dryrun=True)
    costs = {
        "fetch": {"hub-G-2B": (0.0, 4.0)},
        "serve": {"served-G-2B": (1.5, 0.0)},
        "generate": {"8B-sft": (0.5, 0.0), "8B-sft@made": (0.25, 0.0)},
    }
    memory = {
        "serve": {"served-G-2B": GpuMemory(3.73, weights_alone=True)},
        "generate": {"8B-sft": GpuMemory(64.7), "8B-sft@made": GpuMemory(21.0)},
        "sft": {"8B-base": GpuMemory(38.7)},
    }
    licences = {"hub-G-2B": "terms, gated", "hub-L-8B": "MIT"}
    console(None, "scale released", job_costs=costs, gpu_memory=memory, licences=licences)
    stats = {"fetch": 1, "serve": 2, "generate": 2, "sft": 1, "total": 6}
    planned = [("fetch", "hub-G-2B"), ("serve", "served-G-2B"), ("serve", "served-G-2B"), ("generate", "8B-sft")]
    for rule, unit in (*planned, ("generate", "8B-sft@made"), ("sft", "8B-base")):
        console(LogEvent.JOB_INFO, **job | {"rule_name": rule, "wildcards": {"unit": unit}})
    *_, empty, head, served, trained, base = console(LogEvent.RUN_INFO, "Job stats:", stats=stats).splitlines()
    assert empty == ""
    assert head.split() == ["model", "GPU-hours", "gigabytes", "GPU", "GiB", "licence"]
    assert served.split() == ["G-2B", "3.0", "4", "3.7+", "terms,", "gated"]
    assert trained.split() == ["8B-sft", "0.8", "64.7"]
    assert base.split() == ["8B-base", "38.7"], "its hours are not known, its memory is"


def test_a_failure_shows_its_log_and_not_its_input(capsys, job, tmp_path):
    (tmp_path / "sft.log").write_text("dice sft: no pairs\n")
    text = Console(capsys)(LogEvent.JOB_ERROR, level=logging.ERROR, **job | {"log": [str(tmp_path / "sft.log")]})
    assert "sft failed" in text
    assert "dice sft: no pairs" in text
    assert "src/dice" not in text
    command = "CalledProcessError in file train.smk, line 20:\nCommand 'dice sft' returned non-zero exit status 2."
    console = Console(capsys)
    assert console(LogEvent.ERROR, command, level=logging.ERROR, exception="RuleException") == ""
    missing = "MissingOutputException in rule sft in file train.smk, line 20:\nresults/models/8B-sft"
    assert "8B-sft" in console(LogEvent.ERROR, missing, level=logging.ERROR, exception="RuleException")


def test_chatter_is_left_out_and_what_a_user_should_know_is_not(capsys):
    console = Console(capsys)
    assert console(None, "Select jobs to execute...") == ""
    assert "Nothing to be done" in console(None, "Nothing to be done (all requested files are present).")
    assert "Execute with care" in console(None, "Execute with care", level=logging.WARNING)
    assert "no such rule" in console(LogEvent.ERROR, "no such rule", level=logging.ERROR)


def test_snakemake_finds_the_logger_by_its_name():
    plugin = LoggerPluginRegistry().get_plugin("dice")
    assert isinstance(plugin, Plugin)
    assert plugin.log_handler is LogHandler
