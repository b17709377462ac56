"""Jobs on disk: whatever moment a service dies at, what was told is there, and what has no verdict is open."""

from __future__ import annotations

import errno
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from verdicts import verdict

from dice.errors import DiceError, HarnessError
from dice.kernels.records.job import Job
from dice.service.journal import Accepted, Finished, JobJournal, Joined, Left, job_journal

JOB = Job(problem_id="p", problem_code="problem", sample=0, code="code\n\ud800")


def accepted(id: str, client: str = "a", priority: int = 0) -> Accepted:
    return Accepted(id=id, clients=[client], priority=priority, job=JOB)


def finished(id: str, status: str = "correct") -> Finished:
    return Finished(id=id, verdicts=[verdict(status=status)])


def state(journal: JobJournal) -> tuple[list[str], dict[str, str]]:
    done = {id: journal.verdicts(id) for id in "xyz"}
    return list(journal.open), {id: found[0].status for id, found in done.items() if found}


EVENTS = st.lists(st.tuples(st.sampled_from("anf"), st.sampled_from("xyz")), max_size=12)


@settings(max_examples=60, deadline=None)
@given(events=EVENTS, cut=st.integers(min_value=0))
def test_a_file_that_ends_anywhere_is_taken_up(tmp_path_factory, events, cut):
    """Rows that are whole count; the torn one never was. Said by hand: `a` opens, `f` settles, `n` withdraws."""
    folder = tmp_path_factory.mktemp("jobs")
    rows: list[tuple[str, str]] = []
    with job_journal(folder, "i", 100) as journal:
        for kind, id in events:
            is_open = id in journal.open
            if kind == "a" and not is_open:
                journal.add(accepted(id))
            elif kind == "f" and is_open:
                journal.add(finished(id))
            elif kind == "n" and is_open:
                journal.add(Left(id=id, client="a"))
            else:
                continue
            rows.append((kind, id))
        whole = journal.path.read_bytes()
    head = whole.index(b"\n") + 1
    kept = whole[: head + cut % (len(whole) - head + 1)]
    journal.path.write_bytes(kept)
    complete = rows[: kept.count(b"\n") - 1]
    last = {id: kind for kind, id in complete}
    settled = {}
    for kind, id in complete:
        if kind == "f":
            settled[id] = "correct"
        elif kind == "a":
            settled.pop(id, None)
    for _ in range(2):  # what is written anew on opening says the same
        with job_journal(folder, "i", 100) as journal:
            assert set(journal.open) == {id for id, kind in last.items() if kind == "a"}
            assert state(journal)[1] == settled
            assert all(found == accepted(id) for id, found in journal.open.items())
            journal.add(accepted("new"), finished("new"))  # and what is added goes behind it, not into the torn row
            assert journal.verdicts("new") == [verdict()]


def test_open_jobs_keep_their_order_clients_and_priority(tmp_path):
    with job_journal(tmp_path, "i", 100) as journal:
        journal.add(accepted("y"), accepted("x", "b", 5))
        journal.add(Joined(id="y", client="b", priority=3), Joined(id="x", client="b", priority=1))
        journal.add(Joined(id="x", client="a", priority=1), Left(id="x", client="b"))
    with job_journal(tmp_path, "i", 100) as journal:
        assert list(journal.open) == ["y", "x"]
        assert [(job.clients, job.priority) for job in journal.open.values()] == [(["a", "b"], 3), (["a"], 5)]
        journal.add(Left(id="x", client="a"), Left(id="y", client="c"))
        assert list(journal.open) == ["y"]


def test_only_the_newest_verdicts_are_kept_in_memory_and_on_disk(tmp_path):
    with job_journal(tmp_path, "i", 3) as journal:
        sizes = []
        for number in range(40):
            journal.add(accepted(f"{number}"), finished(f"{number}"))
            sizes.append(journal.path.stat().st_size)
        assert journal.verdicts("36") is None
        assert journal.verdicts("37") == [verdict()]
        assert max(sizes[20:]) <= max(sizes[:20]) + 100  # digits of the ids
    with job_journal(tmp_path, "i", 3) as journal:
        assert [number for number in range(40) if journal.verdicts(f"{number}")] == [37, 38, 39]


def test_a_disk_that_fails_while_the_file_is_written_anew(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with job_journal(tmp_path, "i", 1) as journal:
        journal.add(accepted("x"), finished("x"))
        monkeypatch.setattr("dice.service.journal.write_jsonl", full)
        with pytest.raises(HarnessError, match="No space left on device"):
            journal.add(accepted("y"), finished("y"))
    monkeypatch.undo()
    with job_journal(tmp_path, "i", 1) as journal:
        assert state(journal) == ([], {"y": "correct"})


def test_a_host_error_is_forgotten_once_the_job_is_asked_for_again(tmp_path):
    with job_journal(tmp_path, "i", 100) as journal:
        journal.add(accepted("x"), finished("x", "host_error"), accepted("x"))
        assert state(journal) == (["x"], {})
    with job_journal(tmp_path, "i", 100) as journal:
        assert state(journal) == (["x"], {})
        journal.add(finished("x"))
        assert state(journal) == ([], {"x": "correct"})


def test_verdicts_of_other_settings_are_never_given_out(tmp_path):
    with job_journal(tmp_path, "i", 100) as journal:
        journal.add(accepted("x"), finished("x"), accepted("y"))
    with pytest.raises(DiceError, match="1 accepted jobs wait"), job_journal(tmp_path, "other", 100):
        pass
    with job_journal(tmp_path, "i", 100) as journal:
        assert state(journal) == (["y"], {"x": "correct"})
        journal.add(finished("y"))
    with job_journal(tmp_path, "other", 100) as journal:
        assert state(journal) == ([], {})


def test_one_service_at_a_time(tmp_path):
    with (
        job_journal(tmp_path, "i", 100),
        pytest.raises(DiceError, match="another service"),
        job_journal(tmp_path, "i", 1),
    ):
        pass


@pytest.mark.parametrize(
    "row", ['{"event": "sold", "id": "x"}', '{"event": "left", "id": 3}', "{", '{"event": {}}', '{"event": [1]}']
)
def test_a_row_that_is_no_event_is_named(tmp_path, row):
    with job_journal(tmp_path, "i", 100) as journal:
        journal.path.write_text(json.dumps({"identity": "i"}) + "\n" + row + "\n")
    with pytest.raises(DiceError, match=r"jobs\.jsonl:2"), job_journal(tmp_path, "i", 100):
        pass


def test_a_verdict_with_half_a_character_is_given_out(tmp_path):
    with job_journal(tmp_path, "i", 100) as journal:
        journal.add(accepted("x"), Finished(id="x", verdicts=[verdict(message="\ud800")]))
        assert journal.verdicts("x") == [verdict(message="\ud800")]
