"""A service in the place of a pool: the rewards of `dice rl` over real HTTP. The service's workers do as they are told."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Generator
from typing import cast

import pytest
from service_start import scripted_pool

from dice.decoding.decoder import Completion, Request, Trace
from dice.errors import DiceError
from dice.kernels.api import Feed, Job, Judging
from dice.kernels.records.verdict import Verdict
from dice.service.journal import job_journal
from dice.service.remote_pool import RemotePool
from dice.service.settings import ServeConfig
from dice.service.stage import Service, address, listen
from dice.service.tokens import Tokens
from dice.training.rl_config import RewardConfig
from dice.training.rl_data import Candidate, RlProblem
from dice.training.rollout import Answer, Asked, Verifier, reward_of

JUDGING = Judging(correctness_trials=1, measure_time=False)


@pytest.fixture
def url(tmp_path, monkeypatch):
    """A service that listens, in a thread of this process."""
    monkeypatch.setattr("dice.service.dispatcher.open_pool", functools.partial(scripted_pool, tmp_path))
    config = ServeConfig(
        state=str(tmp_path / "state"), port=0, backend="cpu", judging=JUDGING, client_problems=True, retries=0
    )
    with job_journal(config.state, "identity", 100) as journal, listen(config) as listening:
        service = Service(config, journal, Tokens())
        thread = threading.Thread(target=service.run, args=(listening,))
        thread.start()
        yield address(config, listening.getsockname()[1])
        service.server.should_exit = True
        thread.join()


def answer(code: str | None, sample: int) -> Answer:
    problem = RlProblem("p", "class Model: theirs", (1, 2), 1)
    done = Completion(Request((1,), 1), (5,), (1,), (0.0,), 1, 0.0, "stop", Trace((5,), (1,), (0.0,)))
    return Answer(Asked(problem, 0, sample), done, "", Candidate(code))


def test_rewards_of_a_step(url, tmp_path):
    config = RewardConfig(url=url, backend="cpu", judging=JUDGING)
    codes = ["right", "wrong", "right", "host_error once", "host_error always", None]
    answers = [answer(code, number) for number, code in enumerate(codes)]
    with Verifier(config, most_jobs=8) as verifier:

        def step() -> int:
            pending = verifier.begin()
            for one in answers:
                pending.submit(one)
            pending.finish()
            assert [reward_of(one.verdict, config) for one in answers] == [1, 0, 1, 1, None, None]
            assert answers[4].status == "host_error"
            return pending.host_errors

        step()  # a run has many steps, and one pool
        assert step() == 2
    assert len(list(tmp_path.glob("right.*"))) == 1  # the second step's answers were known


def test_a_step_that_is_given_up_ends_at_once(url, monkeypatch):
    monkeypatch.setattr("dice.service.dispatcher.Dispatcher._fill", lambda self: None)  # no job ever runs
    config = RewardConfig(url=url, backend="cpu", judging=JUDGING, silence_s=0.1)
    with Verifier(config, most_jobs=8) as verifier:
        for _ in range(2):
            pending, one = verifier.begin(), answer("right", 0)
            pending.submit(one)
            pending.finish()
            assert one.status == "no_verdict"


def test_a_stream_that_is_stopped_ends_at_once(url, monkeypatch):
    monkeypatch.setattr("dice.service.dispatcher.Dispatcher._fill", lambda self: None)
    with RemotePool(url, "cpu", JUDGING, RewardConfig().limits) as pool:
        for closed in (False, True):
            feed = Feed()
            feed.put(Job(problem_id="p", problem_code="class Model", sample=0, code="right"))
            if closed:
                feed.close()
            threading.Timer(0.1, feed.stop).start()
            assert list(pool.stream(feed)) == []


def test_a_service_that_judges_otherwise_is_refused(url):
    with pytest.raises(DiceError, match=r"its 'judging' is .*correctness_trials=1.* here it is .*correctness_trials=5"):
        Verifier(RewardConfig(url=url, backend="cpu", judging=Judging()), most_jobs=1).restart()
    with pytest.raises(DiceError, match="its 'backend' is cpu, and here it is cuda"):
        Verifier(RewardConfig(url=url, judging=JUDGING), most_jobs=1).restart()


def test_a_pool_that_cannot_be_opened_leaves_no_thread(url):
    pool = RemotePool(f"{url}/nothing", "cpu", JUDGING, RewardConfig().limits)
    with pytest.raises(DiceError, match="404"), pool:
        pass
    assert not [thread.name for thread in threading.enumerate() if "portal" in thread.name]


def test_what_the_service_refuses_ends_the_stream(url):
    with RemotePool(url, "cpu", JUDGING, RewardConfig().limits) as pool:
        feed = Feed()
        feed.put(Job(problem_id="p", problem_code="\ud800", sample=7, code="right"))
        found = cast(Generator[list[Verdict], None, None], pool.stream(feed))
        with pytest.raises(DiceError), contextlib.closing(found) as stream:
            next(stream)
        feed = Feed()
        feed.put(Job(problem_id="q", problem_code="class Model", sample=7, code="right"))
        feed.close()
        [[verdict]] = list(pool.stream(feed))
        assert (verdict.problem_id, verdict.sample, verdict.status) == ("q", 7, "correct")


def test_the_service_writes_where_it_listens():
    assert address(ServeConfig(state="s"), 80) == "http://127.0.0.1:80"
    assert address(ServeConfig(state="s", host="::1"), 80) == "http://[::1]:80"
    assert address(ServeConfig(state="s", host="0.0.0.0"), 80).startswith("http://")
    assert "0.0.0.0" not in address(ServeConfig(state="s", host="0.0.0.0"), 80)
