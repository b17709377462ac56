"""The pool: every job gets its verdicts exactly once, whatever happens to the workers."""

import functools
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from pool_handlers import EveryOtherStart, Scripted, Weighed, dies_at_start, host_error, refuses_to_start
from waiting import is_gone, wait_for

from dice.errors import DiceError, HarnessError
from dice.kernels.pool.pool import Feed, Pool, WorkerPlan, check_temporary_folder
from dice.kernels.records.job import Job

TIMEOUT_S = 3600.0


def job(sample, order):
    return Job(problem_id="level1/1_X", problem_code="", sample=sample, code=order)


def plans(folder, builders=1, executors=2):
    return [
        WorkerPlan("build", builders, functools.partial(Scripted, str(folder), "build"), TIMEOUT_S),
        WorkerPlan("execute", executors, functools.partial(Scripted, str(folder), "execute"), TIMEOUT_S),
    ]


def test_each_job_once_whatever_happens(tmp_path):
    orders = ["ok", "broken", "die", "die_once", "bug", "bug_once", "harness", "ok"] + ["ok"] * 12
    with Pool(plans(tmp_path), host_error) as pool:
        verdicts = [v for group in pool.run([job(i, order) for i, order in enumerate(orders)]) for v in group]
    by_sample = {v.sample: v for v in verdicts}
    assert len(verdicts) == len(by_sample) == len(orders)
    want = {1: "compile_error", 2: "host_error", 4: "host_error", 6: "host_error"}
    assert {s: v.status for s, v in by_sample.items() if v.status != "correct"} == want
    assert "ZeroDivisionError: oops (pool_handlers.py:" in by_sample[4].message
    assert by_sample[6].message == "disk full"


def test_stuck_worker_is_replaced(tmp_path, monkeypatch):
    def clock():
        """An hour later from the moment on when the first worker hangs."""
        return time.monotonic() + (TIMEOUT_S + 1 if (tmp_path / "tried-0").exists() else 0)

    monkeypatch.setattr("dice.kernels.pool.pool.time", SimpleNamespace(monotonic=clock))
    with Pool(plans(tmp_path, builders=0, executors=1), host_error) as pool:
        verdicts = [v for group in pool.run([job(0, "hang_once"), job(1, "ok")]) for v in group]
    assert [v.status for v in sorted(verdicts, key=lambda v: v.sample)] == ["correct", "correct"]


@pytest.mark.parametrize(
    ("factory", "error", "text"),
    [(refuses_to_start, DiceError, "install g"), (dies_at_start, HarnessError, "die while starting")],
)
def test_workers_that_cannot_start_stop_the_run(factory, error, text):
    with pytest.raises(error, match=text), Pool([WorkerPlan("execute", 1, factory)], host_error) as pool:
        list(pool.run([job(0, "ok")]))


def test_a_worker_that_lives_ends_the_count_of_those_that_die_while_starting(tmp_path):
    """Each job ends a worker, and each of the workers that follow dies first: over a long run that is no broken machine."""
    start = functools.partial(EveryOtherStart, str(tmp_path), "execute")
    with Pool([WorkerPlan("execute", 1, start, TIMEOUT_S)], host_error) as pool:
        verdicts = [v for group in pool.run([job(number, "die_once") for number in range(4)]) for v in group]
    assert [v.status for v in verdicts] == ["correct"] * 4


def test_killed_pool_leaves_no_worker(tmp_path):
    script = (
        "import sys, functools\n"
        f"sys.path[:0] = {[str(folder) for folder in Path(__file__).parents[1:3]]!r}\n"
        "from pool.test_pool import plans, job, host_error, Pool\n"
        "if __name__ == '__main__':\n"
        f"    with Pool(plans({str(tmp_path)!r}, 0, 2), host_error) as pool:\n"
        "        list(pool.run([job(0, 'hang_once'), job(1, 'hang_once')]))\n"
    )
    file = tmp_path / "main.py"
    file.write_text(script)
    process = subprocess.Popen([sys.executable, str(file)])
    wait_for(lambda: len(list(tmp_path.glob("tried-*"))) == 2, "both workers have a job")
    workers = [int(path.name.partition("-")[2]) for path in tmp_path.glob("execute-*")]
    assert len(workers) == 2
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_for(lambda: all(map(is_gone, workers)), "the workers end")


def test_workers_begin_with_everything_imported_and_out_of_the_collectors_sight(tmp_path):
    with Pool(plans(tmp_path, builders=0, executors=1), host_error) as pool:
        ((found,),) = pool.run([job(0, "say what is there")])
    assert found.message == "True True True"


def test_jobs_may_come_while_others_are_worked_on(tmp_path):
    feed, seen, three = Feed(), [], threading.Event()

    def give():
        for sample in range(6):
            feed.put(job(sample, "ok"))
            if sample == 2:  # nothing more before the first three are back
                three.wait()
        feed.close()

    with Pool(plans(tmp_path), host_error) as pool:
        threading.Thread(target=give, daemon=True).start()
        for group in pool.stream(feed):
            seen.append(group[0].sample)
            if len(seen) == 3:
                three.set()
    assert sorted(seen) == list(range(6))
    assert set(seen[:3]) == {0, 1, 2}


@pytest.mark.parametrize(("whole", "order"), [(True, [0, 2, 4, 3, 1, 5]), (False, [0, 1, 2, 3, 4, 5])])
def test_the_longest_work_of_a_whole_batch_begins_first(tmp_path, whole, order):
    feed, work = Feed(), [10, 3, 9, 5, 7, 0]
    for sample, amount in enumerate(work):
        feed.put(job(sample, str(amount)))
    if whole:
        feed.close()
    weighed = functools.partial(Weighed, str(tmp_path), jobs=len(work))
    roles = [WorkerPlan(role, 1, functools.partial(weighed, role), TIMEOUT_S) for role in ("build", "execute")]
    seen = []
    with Pool(roles, host_error) as pool:
        for (verdict,) in pool.stream(feed):
            seen.append(verdict.sample)
            if len(seen) == len(work):
                feed.close()
    assert seen == order


def test_a_job_pays_for_no_earlier_one(tmp_path):
    """In a stream that goes on for long, a new job gets the place in memory, and so the id, of one that is done."""
    feed = Feed()
    with Pool(plans(tmp_path, builders=0, executors=1), host_error) as pool:
        feed.put(job(0, "bug_once"))
        seen = []
        for group in pool.stream(feed):
            seen += [v.status for v in group]
            feed.put(job(len(seen), "bug_once")) if len(seen) < 30 else feed.close()
    assert seen == ["correct"] * 30


def test_a_feed_that_is_stopped_ends_the_stream_at_once(tmp_path):
    feed = Feed()

    def stop_when_it_hangs():
        wait_for((tmp_path / "tried-1").exists, "the second job hangs")
        feed.stop()

    with Pool(plans(tmp_path, builders=0, executors=1), host_error) as pool:
        feed.put(job(0, "ok"))
        feed.put(job(1, "hang_once"))
        stream = pool.stream(feed)
        assert [v.status for v in next(stream)] == ["correct"]
        later = threading.Thread(target=stop_when_it_hangs)
        later.start()
        assert list(stream) == []  # or it would wait for a job that has an hour
        later.join()
        assert [v.sample for group in pool.run([job(2, "ok")]) for v in group] == [2], "the only worker is free again"


def test_a_temporary_folder_with_too_long_a_path_is_told_in_one_sentence():
    check_temporary_folder("/tmp/" + "x" * 70)
    with pytest.raises(
        DiceError, match=r"path of 76 bytes, too long for a socket .* Set TMPDIR to one of at most 75 bytes\."
    ):
        check_temporary_folder("/tmp/" + "x" * 71)
