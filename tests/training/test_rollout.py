"""Answers and their rewards: what the verifier's faults do, what deception does, which part of an answer counts."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import pytest
import rl_start
from rl_handlers import host_error, plans, verdict
from waiting import PATIENCE_S

from dice.data.pair import Pair
from dice.decoding.decoder import Completion, Request, Trace
from dice.errors import HarnessError
from dice.kernels.pool.pool import Feed, Pool
from dice.kernels.pool.workers import Machine, cores
from dice.kernels.records.job import Job
from dice.kernels.records.verdict import Finding
from dice.training import rollout
from dice.training.rl_config import RewardConfig
from dice.training.rl_data import Candidate, RlProblem
from dice.training.rollout import Answer, Asked, PendingVerdicts, Verifier, answer_seed, reward_of

PROBLEM = RlProblem("p", "code", (1, 2), 1)
JOB = Job(problem_id="p", problem_code="", sample=0, code="x")


def answer(code: str | None, sample: int = 0) -> Answer:
    trace = Trace((5,), (1,), (0.0,))
    done = Completion(Request((1,), 1), (5,), (1,), (0.0,), 1, 0.0, "stop", trace)
    return Answer(Asked(PROBLEM, 0, sample), done, "", Candidate(code))


@pytest.fixture
def verifier(tmp_path, monkeypatch):
    """Opens a verifier with settings, whose two workers do as candidates say."""
    with contextlib.ExitStack() as stack:

        def opened(**settings) -> Verifier:
            monkeypatch.setattr(rollout, "open_pool", lambda *_: Pool(plans(tmp_path), host_error))
            return stack.enter_context(Verifier(RewardConfig(backend="cpu", **settings), most_jobs=8))

        yield opened


def submit(verifier: Verifier, *answers: Answer) -> PendingVerdicts:
    pending = verifier.begin()
    for one in answers:
        pending.submit(one)
    return pending


def verified(verifier: Verifier, *orders: str | None) -> tuple[list[Answer], PendingVerdicts]:
    answers = [answer(order, number) for number, order in enumerate(orders)]
    pending = submit(verifier, *answers)
    pending.finish()
    for one in answers:
        one.reward = reward_of(one.verdict, verifier.config)
    return answers, pending


def test_a_fault_of_the_host_is_never_reward_0(verifier, tmp_path):
    orders = ["right", "wrong_value", "host_error once", "host_error always", "die", "bug", "timeout"]
    answers, pending = verified(verifier(), *orders, "unsupported_on_cpu", "refused_flag")
    assert [one.reward for one in answers] == [1, 0, 1, None, None, None, 0, 0, 0]
    assert answers[2].status == "correct"
    assert answers[3].status == "host_error"
    assert pending.host_errors == 1 + 2 + 2 + 2  # each was tried again once
    assert len(list(tmp_path.glob("tried-3-*"))) == 2
    config = RewardConfig(backend="cpu")
    assert reward_of(answers[3].verdict, config, host_error_earns_zero=True) == 0  # as released
    assert reward_of(answers[7].verdict, RewardConfig(backend="cpu", unsupported_earns_zero=False)) is None


def test_no_retry_where_none_is_wanted(verifier):
    answers, pending = verified(verifier(retries=0), "host_error once")
    assert answers[0].reward is None
    assert pending.host_errors == 1


def test_a_silent_verifier_leaves_answers_out(verifier):
    opened = verifier(silence_s=0.5)
    right, hanging = answer("right"), answer("hang", 1)
    pending = submit(opened, right)
    assert opened.take(PATIENCE_S)
    pending.submit(hanging)
    pending.finish()
    assert reward_of(right.verdict, opened.config) == 1
    assert reward_of(hanging.verdict, opened.config) is None
    assert hanging.status == "no_verdict"


def test_equal_candidates_are_verified_once(verifier, tmp_path):
    answers, _ = verified(verifier(), "right", "right", "wrong_value", "right", None)
    assert [one.reward for one in answers[:4]] == [1, 1, 0, 1]
    assert answers[4].status == "no_code"
    assert len(list(tmp_path.glob("tried-*"))) == 2


def test_sets_of_answers_overlap(verifier, tmp_path):
    """A step's answers, and those of the next one, which have the same places and partly the same texts."""
    opened = verifier()
    these, those = ([answer(order, number) for number, order in enumerate(orders)] for orders in (
        ["right", "host_error once", "wrong_value"], ["wrong_value", "right", "host_error always"]
    ))  # fmt: skip
    first = submit(opened, *these)
    second = submit(opened, *those)
    second.finish()
    first.finish()
    assert [one.status for one in these] == ["correct", "correct", "wrong_value"]
    assert [one.status for one in those] == ["wrong_value", "correct", "host_error"]
    assert (first.host_errors, second.host_errors) == (1, 2)
    assert None not in (first.began, first.ended, second.began, second.ended)
    assert len({path.name.split("-")[1] for path in tmp_path.glob("tried-*")}) == 6  # each set is judged by itself


def test_a_set_that_is_given_up_takes_none_with_it(verifier):
    """Both workers hang, so the next step's answers wait for them; a new pool judges them."""
    opened = verifier(silence_s=0.5)
    hanging, others = [answer("hang"), answer("hang and hang", 1)], [answer("right"), answer("wrong_value", 1)]
    first, second = submit(opened, *hanging), submit(opened, *others)
    first.finish()
    assert [one.status for one in hanging] == ["no_verdict"] * 2
    second.verifier.config = RewardConfig(backend="cpu")  # a pool's start may be slower than it is silent
    second.finish()
    assert [one.status for one in others] == ["correct", "wrong_value"]
    assert first.missing == 2


def test_what_ends_the_pool_ends_the_run(monkeypatch):
    def broken(_: Feed):
        raise HarnessError("no compiler")
        yield

    monkeypatch.setattr(rollout, "open_pool", lambda *_: contextlib.nullcontext(SimpleNamespace(stream=broken)))
    with Verifier(RewardConfig(backend="cpu"), most_jobs=8) as opened, pytest.raises(HarnessError, match="no compiler"):
        submit(opened, answer("right")).finish()


def test_deception_earns_nothing_unless_it_is_allowed():
    finding = Finding(
        name="never_launched",
        rule="paper_3",
        source="dynamic",
        evidence="0 launches",
        fatal={"paper": True, "strict": True},
    )
    cheat = verdict(JOB, "deceptive", functional_status="correct", deception=[finding])
    assert reward_of(cheat, RewardConfig()) == 0
    assert reward_of(cheat, RewardConfig(deceptive_earns_zero=False)) == 1
    one = answer("x")
    one.verdict = cheat
    assert one.deceptive
    one.verdict = verdict(JOB, "correct")
    assert not one.deceptive
    assert reward_of(one.verdict, RewardConfig()) == 1


def infilling() -> tuple[Pair, RlProblem]:
    pair = rl_start.pair("double")
    return pair, RlProblem("double", pair.pytorch_code, (1,), 1, pair.prefix, pair.suffix)


def test_infilling_verifies_the_assembled_file():
    pair, problem = infilling()
    assert problem.candidate(pair.middle or "") == Candidate(pair.cuda_code)
    fenced = problem.candidate(f"```python\n{pair.middle}\n```")
    assert fenced == Candidate(pair.cuda_code)


def test_an_answer_that_leaves_the_middle_is_cut_or_refused():
    pair, problem = infilling()
    rest = "\n\nclass ModelNew(nn.Module):\n    def forward(self, x):\n        return x * 2\n"
    cut = problem.candidate((pair.middle or "") + rest)
    assert cut.code == pair.cuda_code  # its own ModelNew is gone, the given one stands
    assert cut.left_middle
    whole = problem.candidate(f"```python\n{pair.cuda_code.replace('return module.run(x)', 'return x * 2')}\n```")
    assert whole.code == pair.cuda_code
    assert whole.left_middle
    for text in ("", "I cannot do that.", 'source = """ never closed', "source = open('x').read()"):
        refused = problem.candidate(text)
        assert refused.code is None
        assert refused.reason


def test_whole_file_infilling_enforces_nothing():
    pair, _ = infilling()
    released = RlProblem("double", pair.pytorch_code, (1,), 1)
    cheat = pair.cuda_code.replace("return module.run(x)", "return x * 2")
    found = released.candidate(f"```python\n{cheat}\n```")
    assert found.code is not None
    assert "return x * 2" in found.code


def test_seeds_are_of_their_own():
    seeds = {
        answer_seed(*key) for key in [(0, 1, "a", 0, 0), (1, 1, "a", 0, 0), (0, 2, "a", 0, 0), (0, 1, "b", 0, 0),
                                       (0, 1, "a", 1, 0), (0, 1, "a", 0, 1)]
    }  # fmt: skip
    assert len(seeds) == 6
    assert answer_seed(0, 1, "a", 0, 0) in seeds


@pytest.mark.parametrize("status", ["correct", "wrong_value", "compile_error", "timeout", "runtime_error", "deceptive"])
def test_every_other_status_is_the_candidates_own(status):
    assert reward_of(verdict(JOB, status), RewardConfig()) == float(status == "correct")


@pytest.mark.parametrize(("backend", "name"), [("cpu", "jobs"), ("cuda", "builders")])
def test_processes_of_one_machine_share_its_cores(backend, name):
    shared = Verifier(RewardConfig(backend=backend), most_jobs=8, gpu=0, share=2).machine
    assert getattr(shared, name) == max(1, cores() // 2)
    assert getattr(Verifier(RewardConfig(backend=backend), most_jobs=8, gpu=0).machine, name) is None
    told = RewardConfig(backend=backend, machine=Machine(jobs=7, builders=7))
    assert getattr(Verifier(told, most_jobs=8, gpu=0, share=2).machine, name) == 7
