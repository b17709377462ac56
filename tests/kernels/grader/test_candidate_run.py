"""What a candidate's run knows of its process: what was seen of it until its end, and how much time is left."""

from __future__ import annotations

import pytest
from execution import PROBLEM, NoBuilder, honest_with, job

from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.executor import Executor
from dice.kernels.grader.reference import Reference, Seeds
from dice.kernels.records.job import Judging, Limits
from dice.kernels.sandbox.fork_server import ForkServer


@pytest.fixture
def run(plain_executor: Executor) -> CandidateRun:
    place = plain_executor._place
    return CandidateRun(place, Reference("p", PROBLEM, place.device), Seeds.draw(None, 1))


def test_processes_below_a_candidate_are_evidence_whenever_they_are_seen(run: CandidateRun) -> None:
    for names in ({"sh"}, set(), {"python", "sh"}):
        run.start()
        run.session.child_processes |= names
        run.end()
    assert run.evidence.child_processes == ["python", "sh"]


def test_the_limit_that_was_reached_is_told(fork_server: ForkServer) -> None:
    def message(limits: Limits) -> str:
        with Executor(fork_server, NoBuilder(), "cpu", limits=limits, judging=Judging(correctness_trials=1)) as short:
            (verdict,) = short.verify(job(honest_with("while True: pass"), PROBLEM))
        assert verdict.status == "timeout"
        return verdict.message

    assert message(Limits(import_timeout_s=60, total_timeout_s=1)) == (
        "its 1 s in all were used up before 'import' ended"
    )
    assert message(Limits(import_timeout_s=1, total_timeout_s=60)) == "no end after 1 s in 'import'"
