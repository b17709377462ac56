"""The numbers of a step's answers, counted by hand."""

from __future__ import annotations

import pytest
from rl_handlers import verdict

from dice.decoding.decoder import Completion, Request, Trace
from dice.decoding.requests import FinishReason
from dice.kernels.records.job import Job
from dice.kernels.records.verdict import Finding
from dice.training.rl_data import Candidate, RlProblem
from dice.training.rl_history import RlRow
from dice.training.rl_report import answer_fields, answer_row, progress_line
from dice.training.rl_update import Groups
from dice.training.rollout import Answer, Asked

JOB = Job(problem_id="p", problem_code="", sample=0, code="x")
LONG = {"ids": (7, 7, 7, 7, 7, 5), "log_p": -1.0, "forwards": 3}


def answer(
    problem: str, code: str | None, status: str | None, reward: float | None, *,
    ids=(7, 5), log_p=-0.5, forwards=1, finish: FinishReason = "stop", left_middle=False, findings=(), sample=0,
) -> Answer:  # fmt: skip
    """One answer; `findings`: (name, fatal) of each."""
    log_ps = (log_p,) * len(ids)
    trace = Trace(ids, (1,) * len(ids), log_ps)
    done = Completion(Request((1,), 9, seed=11), ids, trace.step_map, log_ps, forwards, 0.0, finish, trace)
    signs = [
        Finding(name=name, rule="paper_3", source="dynamic", evidence="", fatal={"paper": fatal})
        for name, fatal in findings
    ]
    found = None if status is None else verdict(JOB, status, deception=signs, message=f"it is {status}")
    candidate = Candidate(code, "" if code else "no middle", left_middle)
    return Answer(Asked(RlProblem(problem, "", (1,), 1), 2, sample), done, "text", candidate, found, reward)


def groups() -> list[list[Answer]]:
    """Nine answers of which one is right, eight of which none is, and one that earned neither."""
    twice = (("never_launched", True), ("never_launched", True), ("no_kernel", False))
    first = [
        answer("a", "x", "correct", 1.0, **LONG),
        *[answer("a", "y", "wrong_value", 0.0, finish="length") for _ in range(3)],
        *[answer("a", "y", "wrong_value", 0.0, left_middle=True) for _ in range(2)],
        *[answer("a", "y", "wrong_value", 0.0) for _ in range(2)],
        answer("a", None, None, 0.0),
    ]
    second = [
        answer("b", "x", "deceptive", 0.0, findings=twice),
        answer("b", "x", "wrong_value", 0.0, findings=(("never_launched", False),)),
        *[answer("b", "x", "wrong_value", 0.0) for _ in range(6)],
    ]
    return [first, second, [answer("c", "z", None, None)]]


def test_a_steps_numbers_by_hand():
    found = answer_fields(groups(), Groups(all_right=5, all_wrong=4, with_signal=2, advantages=[]))
    assert found == {
        "problems": 3,
        "samples": 18,
        "reward": pytest.approx(1 / 17),
        "pass_at_8": pytest.approx((8 / 9 + 0) / 2),  # one of nine ways to leave one out leaves the right one out
        "left_out": 1,
        "groups_all_right": 5,
        "groups_all_wrong": 4,
        "groups_with_signal": 2,
        "signal_share": pytest.approx(2 / 3),
        "statuses": {"wrong_value": 14, "correct": 1, "no_code": 1, "deceptive": 1, "no_verdict": 1},
        "no_code_share": pytest.approx(1 / 18),
        "left_middle_share": pytest.approx(2 / 18),
        "deception_rate": pytest.approx(1 / 18),
        "findings": {"never_launched": 2, "no_kernel": 1},
        "distinct_share": pytest.approx(4 / 17),  # one text for two problems is two candidates
        "entropy": pytest.approx((34 * 0.5 + 6 * 1.0) / 40),
        "response_tokens": pytest.approx(40 / 18),
        "cut_off_share": pytest.approx(3 / 18),
        "tokens_per_forward": pytest.approx(40 / 20),
    }
    assert found.keys() < RlRow.model_fields.keys()


def test_answers_that_say_nothing_have_no_reward_and_no_candidates():
    found = answer_fields([[answer("a", None, None, None)]], Groups(0, 0, 0, []))
    assert (found["reward"], found["pass_at_8"], found["left_out"]) == (None, None, 1)
    assert (found["distinct_share"], found["no_code_share"], found["signal_share"]) == (0, 1, 0)


def test_the_record_of_an_answer():
    names = ["call_counting", "never_launched", "no_kernel", "stale_output", "uninitialised_output"]
    seen = [(name, name == "no_kernel") for name in [*names[::-1], "no_kernel"]]
    row = answer_row(4, answer("a", "x", "deceptive", 0.0, sample=3, findings=seen, **LONG))
    assert (row.step, row.problem_id, row.group, row.sample, row.seed) == (4, "a", 2, 3, 11)
    assert (row.text, row.code, row.status, row.message, row.reward) == (
        "text", "x", "deceptive", "it is deceptive", 0.0,
    )  # fmt: skip
    assert (row.findings, row.n_tokens, row.n_forwards) == (names, 6, 3)
    refused = answer_row(1, answer("a", None, None, 0.0))
    assert (refused.status, refused.message, refused.findings) == ("no_code", "no middle", [])


def test_a_line_for_people():
    row = RlRow.model_construct(
        phase="infilling", reward=0.25, pass_at_8=0.5, signal_share=0.75, entropy=0.125, loss=-0.1, kl=0.00012,
        clip_share=0.031, response_tokens=812.4, deception_rate=0.0625, seconds=61.6, wait_share=0.1,
    )  # fmt: skip
    assert progress_line(row) == (
        "infilling: reward 0.250, pass@8 0.500, signal 75%, entropy 0.125, KL 0.00012, clipped 3.1%, 812 tokens, "
        "deceptive 6.2%, 62 s (wait 10%)"
    )
    silent = row.model_copy(update={"reward": None, "pass_at_8": None, "loss": None, "signal_share": 0.0})
    assert progress_line(silent).startswith("infilling: reward -, signal 0%, entropy 0.125, 812 tokens")
