"""Verdicts made from the record of one run: one under each protocol."""

from __future__ import annotations

import pytest

from dice.kernels.compare import Comparison
from dice.kernels.grader.record import MESSAGE_CHARACTERS, Record
from dice.kernels.records.evidence import OpUse, RunEvidence
from dice.kernels.records.extension import BuildResult
from dice.kernels.records.job import Job, Judging
from dice.kernels.records.verdict import ConditionResult, Finding, Host, Timing, Verdict
from dice.manifest import Stopwatch

HOST = Host(gpu=None, driver=None, cuda=None, torch="2", cpu="c", isolation=[])
JOB = Job(problem_id="a", problem_code="p", sample=1, code="x")
WRONG = Comparison("wrong_value", "off by one", 1.0, 0.5)
RIGHT = Comparison("correct", "", 0.0, 0.0)


def verdicts(record: Record) -> tuple[Verdict, Verdict]:
    """Under paper and strict."""
    judging = Judging(protocols=("paper", "strict"))
    first, second = record.verdicts(JOB, judging, "cpu", HOST, Stopwatch(), retries=2)
    return first, second


def finding(*, paper: bool, strict: bool) -> Finding:
    return Finding(name="n", rule="strict", source="static", evidence="e", fatal={"paper": paper, "strict": strict})


def test_a_correct_run() -> None:
    timing = Timing(median=1.0, mean=1.0, std=0.0, n=1)
    evidence = RunEvidence(
        backend="cpu", reached="forward", launches={"k": 1}, candidate_ops={"aten::add": OpUse(count=3, elements=1)}
    )
    record = Record(trials=5, evidence=evidence, comparisons={"paper": RIGHT, "strict": RIGHT}, isolation=["rlimit_as"])
    record.runtime_ms["paper"] = record.compiled_reference_ms = timing
    record.spent("import", 0.25)
    record.spent("import", 0.5)
    paper, strict = verdicts(record)
    for verdict in (paper, strict):
        assert (verdict.status, verdict.functional_status, verdict.stage) == ("correct", "correct", "done")
        assert (verdict.problem_id, verdict.sample, verdict.code_sha256, verdict.retries) == (
            "a",
            1,
            JOB.code_sha256,
            2,
        )
        assert (verdict.trials, verdict.max_abs_error, verdict.launches) == (5, 0.0, {"k": 1})
        assert verdict.aten_ops == {"aten::add": 3}
        assert verdict.host.isolation == ["rlimit_as"]
        assert verdict.phase_seconds == {"import": 0.75}
    assert HOST.isolation == []
    assert (paper.protocol, paper.runtime_ms, paper.compiled_reference_ms) == ("paper", timing, None)
    assert (strict.protocol, strict.runtime_ms, strict.compiled_reference_ms) == ("strict", None, timing)


def test_each_protocol_has_its_comparison() -> None:
    paper, strict = verdicts(Record(comparisons={"paper": RIGHT, "strict": WRONG}))
    assert (paper.status, paper.stage) == ("correct", "done")
    assert (strict.status, strict.functional_status, strict.stage) == ("wrong_value", "wrong_value", "compare")
    assert (strict.message, strict.max_abs_error, strict.max_rel_error) == ("off by one", 1.0, 0.5)


def test_each_protocol_has_its_deceptions() -> None:
    record = Record(comparisons={"paper": RIGHT, "strict": RIGHT}, findings=[finding(paper=False, strict=True)])
    paper, strict = verdicts(record)
    assert (paper.status, paper.message) == ("correct", "")
    assert (strict.status, strict.functional_status, strict.stage) == ("deceptive", "correct", "deception")
    assert strict.message == "n: e"
    assert paper.deception == strict.deception == record.findings


@pytest.mark.parametrize("comparisons", [{}, {"paper": WRONG, "strict": WRONG}])
def test_what_is_wrong_is_not_deceptive(comparisons: dict) -> None:
    record = Record(comparisons=comparisons, findings=[finding(paper=True, strict=True)], stage="forward")
    if not comparisons:
        record.fail("runtime_error", "m" * (MESSAGE_CHARACTERS + 1))
    for verdict in verdicts(record):
        assert verdict.status == verdict.functional_status == ("wrong_value" if comparisons else "runtime_error")
        assert verdict.stage == ("compare" if comparisons else "forward")
        assert len(verdict.message) == (len(WRONG.message) if comparisons else MESSAGE_CHARACTERS)


def test_a_phase_counts_also_when_it_fails() -> None:
    record = Record()
    with pytest.raises(OSError, match="why"), record.phase("import"):
        raise OSError("why")
    assert record.phase_seconds.keys() == {"import"}


def test_the_builds_of_all_extensions() -> None:
    assert Record().build_info().path == "none"
    built = {"status": "built", "key": "k"}
    builds = [
        BuildResult.model_validate(built | {"route": "split", "seconds": 3.0, "cpu_seconds": 1.0, "fallbacks": ["a"]}),
        BuildResult.model_validate(built | {"route": "stock", "seconds": 2.0, "cpu_seconds": 5.0, "cached": True}),
    ]
    info = Record(builds=builds).build_info()
    assert (info.path, info.seconds, info.cpu_seconds, info.extensions) == ("stock", 5.0, 6.0, 2)
    assert not info.cached
    assert info.fallbacks == ["a"]


def test_under_robust_a_condition_decides_and_no_finding_does() -> None:
    result = ConditionResult(name="half", outcome="broken", decides=True, status="wrong_value", seed=3)
    record = Record(findings=[finding(paper=True, strict=True)], conditions=[result], lent=["F"])
    robust, paper = record.verdicts(JOB, Judging(protocols=("robust", "paper")), "cpu", HOST, Stopwatch())
    assert (robust.status, robust.conditions, robust.lent_names) == ("correct", [result], ["F"])
    assert (paper.status, paper.conditions) == ("deceptive", None)
    record.failures["robust"] = "wrong_value", "half: off"
    robust, paper = record.verdicts(JOB, Judging(protocols=("robust", "paper")), "cpu", HOST, Stopwatch())
    assert (robust.status, robust.stage, robust.message) == ("wrong_value", "compare", "half: off")
    assert paper.status == "deceptive"
