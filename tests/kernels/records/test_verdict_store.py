"""The verdicts of a run on disk: what is done stays done, however the run ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dice.errors import DiceError
from dice.jsonl import read_jsonl
from dice.kernels.records.failed import failed_verdicts
from dice.kernels.records.job import Job, Judging
from dice.kernels.records.verdict import Status, Verdict
from dice.kernels.records.verdict_store import VerdictStore
from dice.manifest import Stopwatch, write_manifest

BOTH = Judging(protocols=("paper", "strict"))


def job(problem: str, sample: int = 0, code: str = "x", text: str = "p") -> Job:
    return Job(problem_id=problem, problem_code=text, sample=sample, code=code)


def verdicts(of: Job, status: Status = "correct", judging: Judging = BOTH) -> list[Verdict]:
    return failed_verdicts(of, status, "done", "", judging, "cpu")


def keys(found: list[Verdict]) -> list[tuple[str, int, str]]:
    return [(verdict.problem_id, verdict.sample, verdict.protocol) for verdict in found]


def finish(store: VerdictStore, jobs: list[Job], identity: str) -> list[Verdict]:
    """As the stage does it."""
    found = store.finish(jobs)
    write_manifest(store.out, stage="verify", spec={}, watch=Stopwatch(), extra={"settings": identity})
    store.discard_journal()
    return found


def test_a_run_from_beginning_to_end(tmp_path: Path) -> None:
    out = tmp_path / "below" / "out.jsonl"
    jobs = [job("level1/2", 1), job("level1/10"), job("level1/2")]
    store = VerdictStore(out, "a", 2)
    assert store.missing(jobs) == jobs
    for each in jobs:
        store.add(verdicts(each))
    assert store.missing(jobs) == []
    found = finish(store, jobs, "a")
    assert keys(found) == [
        (name, sample, protocol)
        for name, sample in (("level1/10", 0), ("level1/2", 0), ("level1/2", 1))
        for protocol in ("paper", "strict")
    ]
    assert list(read_jsonl(out, Verdict)) == found
    assert not store.partial.exists()
    assert VerdictStore(out, "a", 2).missing(jobs) == []


def test_what_was_added_is_there_after_an_end_without_warning(tmp_path: Path) -> None:
    jobs = [job("a"), job("b"), job("c")]
    store = VerdictStore(tmp_path / "out", "a", 2)
    store.add(verdicts(jobs[0]))
    store.add(verdicts(jobs[1])[:1])  # the second protocol's row was not written
    with store.partial.open("a") as stream:
        stream.write('{"problem_id": "c", "torn')
    again = VerdictStore(tmp_path / "out", "a", 2)
    assert again.missing(jobs) == jobs[1:]
    again.add(verdicts(jobs[1]))
    again.add(verdicts(jobs[2]))
    assert len(again.finish(jobs)) == 6
    lines = again.partial.read_text().splitlines()
    assert json.loads(lines[0]) == {"settings": "a"}
    assert sum("settings" in json.loads(line) for line in lines) == 1


def test_a_run_that_ended_before_its_manifest_goes_on(tmp_path: Path) -> None:
    jobs = [job("a")]
    store = VerdictStore(tmp_path / "out", "a", 2)
    store.add(verdicts(jobs[0]))
    store.finish(jobs)
    again = VerdictStore(tmp_path / "out", "a", 2)
    assert again.missing(jobs) == []
    assert len(finish(again, jobs, "a")) == 2


def test_a_host_error_is_tried_again_and_forgotten(tmp_path: Path) -> None:
    jobs = [job("a"), job("b")]
    store = VerdictStore(tmp_path / "out", "a", 2)
    store.add(verdicts(jobs[0], "host_error"))
    store.add(verdicts(jobs[1], "wrong_value"))
    finish(store, jobs, "a")
    again = VerdictStore(tmp_path / "out", "a", 2)
    assert again.missing(jobs) == jobs[:1]
    again.add(verdicts(jobs[0], "correct"))
    found = finish(again, jobs, "a")
    assert [verdict.status for verdict in found] == ["correct", "correct", "wrong_value", "wrong_value"]
    half = VerdictStore(tmp_path / "other", "a", 2)
    half.add([verdicts(jobs[0])[0], verdicts(jobs[0], "host_error")[1]])
    assert half.missing(jobs) == jobs


def test_another_text_is_another_candidate(tmp_path: Path) -> None:
    store = VerdictStore(tmp_path / "out", "a", 2)
    store.add(verdicts(job("a", code="x")))
    other = [job("a", code="y"), job("a", sample=1, code="x"), job("b", code="x")]
    assert store.missing([job("a", code="x"), *other]) == other
    assert job("a").code_sha256 == "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    odd = Job(problem_id="a", problem_code="p", sample=0, code="\ud800")
    assert odd.code_sha256 != Job(problem_id="a", problem_code="p", sample=0, code=None).code_sha256


def test_an_edited_problem_takes_no_verdict_on_the_old_one(tmp_path: Path) -> None:
    store = VerdictStore(tmp_path / "out", "a", 2)
    store.add(verdicts(job("a")))
    finish(store, [job("a")], "a")
    edited = job("a", text="another p")
    again = VerdictStore(tmp_path / "out", "a", 2)
    assert again.missing([job("a"), edited]) == [edited]
    again.add(verdicts(edited, "wrong_value"))
    assert [verdict.status for verdict in finish(again, [edited], "a")] == ["wrong_value", "wrong_value"]


def test_a_verdict_that_does_not_say_its_problem_is_made_again(tmp_path: Path) -> None:
    """Files of before the field: nobody knows which text of the problem they judged."""
    store = VerdictStore(tmp_path / "out", "a", 2)
    store.add([verdict.model_copy(update={"problem_sha256": None}) for verdict in verdicts(job("a"))])
    assert store.missing([job("a")]) == [job("a")]


def test_other_settings_are_refused(tmp_path: Path) -> None:
    jobs = [job("a")]
    store = VerdictStore(tmp_path / "out", "a", 2)
    store.add(verdicts(jobs[0]))
    store.close()
    with pytest.raises(DiceError, match="was begun with other settings"):
        VerdictStore(tmp_path / "out", "b", 2)
    finish(store, jobs, "a")
    with pytest.raises(DiceError, match="was made with other settings"):
        VerdictStore(tmp_path / "out", "b", 2)
    (tmp_path / "other").write_text("")
    with pytest.raises(DiceError, match="was made with other settings"):
        VerdictStore(tmp_path / "other", "a", 2)


def test_a_damaged_row_is_named_with_its_place(tmp_path: Path) -> None:
    store = VerdictStore(tmp_path / "out", "a", 2)
    store.add(verdicts(job("a")))
    store.close()
    lines = store.partial.read_text().splitlines()
    store.partial.write_text("\n".join([*lines[:2], lines[2].replace('"strict"', '"loose"')]) + "\n")
    with pytest.raises(DiceError, match=r"out\.partial:3: field 'protocol'"):
        VerdictStore(tmp_path / "out", "a", 2)
    store.partial.write_text("\n".join([lines[0], lines[1].replace('"seconds":0.0', '"seconds":1e999')]) + "\n")
    # Infinity, which could not be written again.
    with pytest.raises(DiceError, match=r"out\.partial:2: field 'seconds': .*finite"):
        VerdictStore(tmp_path / "out", "a", 2)
    store.partial.write_text("")
    assert VerdictStore(tmp_path / "out", "a", 2).missing([job("a")]) == [job("a")]
