"""`dice ask` with a real client and a real server of the tests: retries, budgets, kills, keys."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import anyio
import pytest
from asking import FENCE, KEY, PRICES, VARIABLE, asked, lines, number_of, prompts, spec
from chat_server import Reply, completion, serving
from waiting import wait_for

from dice.config import parse_config
from dice.errors import DiceError, HarnessError
from dice.evaluation.generation import Generation, sample_seed, split_thought
from dice.jsonl import read_jsonl
from dice.servers.ask import AskConfig
from dice.servers.client import Client


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv(VARIABLE, KEY)


def test_each_answer_is_paid_once_through_errors_and_a_kill(tmp_path):
    """250 answers: rate limits, errors, cut connections, slow ones, kill -9 in between."""
    rows = prompts(tmp_path, 250)
    later, release = threading.Event(), threading.Event()
    held: list[int] = []
    first_run = True

    def behave(body, attempt):
        n = number_of(body)
        if first_run and sum(server.answered.values()) >= 100:
            held.append(n)
            return Reply(cut=0, after=release)
        if n == 60:
            later.set()
        if attempt == 1 and n % 10 == 1:
            return Reply(429, {"Retry-After": "0.001"}, {"error": {"message": f"slow down, Bearer {KEY}"}})
        if attempt == 1 and n % 10 == 3:
            return Reply(500, {"Retry-After": "0.001"}, {"error": {"message": f"broken, Bearer {KEY}"}})
        if attempt == 1 and n % 50 == 5:
            return Reply(cut=0)
        if attempt == 1 and n % 50 == 15:
            return Reply(cut=40)
        return Reply(after=later if n == 7 else None)

    with serving(behave) as server:
        given = json.dumps(spec(tmp_path, server.url, concurrency=16, prices=PRICES))
        command = [sys.executable, "-m", "dice.cli", "ask", "--config", given]
        log = tmp_path / "first.log"
        with log.open("w") as stream:
            killed = subprocess.Popen(command, stdout=stream, stderr=stream)
        wait_for(lambda: len(held) == 16 or killed.poll() is not None, "all requests under way are held")
        first = sum(server.answered.values())
        assert 100 <= first < 250, log.read_text()
        wait_for(lambda: len(lines(tmp_path / "answers.jsonl")) == first, "all answers are in the journal")
        killed.kill()
        killed.wait()
        first_run = False
        release.set()
        with (tmp_path / "answers.jsonl").open("a") as stream:
            stream.write('{"problem_id": "level1/')  # a line torn by the kill
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(server.answered) == 250
    assert set(server.answered.values()) == {1}, "an answer was paid twice"
    assert server.keys == {f"Bearer {KEY}"}
    answers = list(read_jsonl(tmp_path / "generations.jsonl", Generation))
    assert [row.problem_id for row in answers] == [row.id for row in rows]
    for row, prompt in zip(answers, rows, strict=True):
        body = {"model": "m-1", "messages": [{"content": prompt.prompt}], "seed": row.seed % 2**31}
        assert row.text == completion(body)["choices"][0]["message"]["content"]
        assert row.code is not None
        assert row.code.startswith("import torch")
    facts = json.loads((tmp_path / "generations.jsonl.manifest.json").read_text())["extra"]
    assert facts["cost"] == pytest.approx(250 * (4 * 2 + 7 * 10) / 1e6, rel=1e-9)
    assert (facts["prompt_tokens"], facts["completion_tokens"]) == (1000, 1750)
    assert (facts["answers"], facts["answers_resumed"], facts["models"]) == (250, first, ["m-1"])
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) >= 5
    assert not [path.name for path in written if KEY in path.read_text()]
    assert KEY not in done.stdout + done.stderr


def test_what_is_answered_is_never_asked_again(tmp_path):
    """Not for a deleted result, another budget or another address; other settings are other answers."""
    prompts(tmp_path, 3)
    with serving() as server:
        whole = asked(tmp_path, server.url)
        (tmp_path / "generations.jsonl").unlink()
        assert asked(tmp_path, server.url, budget={"tokens": 10**6}) == whole
    assert asked(tmp_path, "http://127.0.0.1:9/v1") == whole
    with serving() as server:
        asked(tmp_path, server.url, temperature=0.5)
        assert len(server.answered) == 3
        assert asked(tmp_path, server.url) == whole
        assert len(server.answered) == 3


def test_a_request_says_what_the_row_says(tmp_path):
    prompts(tmp_path, 1)
    with serving() as server:
        settings = {"temperature": 0.8, "top_p": 0.95, "limit": "max_completion_tokens", "extra": {"top_k": 20}}
        rows = asked(tmp_path, server.url, {"samples": 3, "seed": 4}, **settings)
        bodies = [json.loads(name) for name in server.attempts]
        asked(tmp_path, server.url, sends_seed=False)
        plain = json.loads(list(server.attempts)[-1])
        asked(tmp_path, server.url, {"seed": 1}, sends_seed=False)
        assert list(server.answered.values())[-1] == 2, "another seed is another answer, sent or not"
    seeds = [sample_seed(4, "level1/0_p", sample) for sample in range(3)]
    assert [row.seed for row in rows] == seeds
    assert sorted(body.pop("seed") for body in bodies) == sorted(seed % 2**31 for seed in seeds)
    message = {"model": "m-1", "messages": [{"role": "user", "content": "write kernel number 0"}]}
    assert bodies == [message | {"temperature": 0.8, "top_p": 0.95, "max_completion_tokens": 100, "top_k": 20}] * 3
    assert plain == message | {"max_tokens": 100}


def test_the_budget_is_kept_and_the_run_goes_on_when_it_is_raised(tmp_path):
    """An answer may take 22 + 1024 tokens of prompt and 100 more; each takes 4 and 7."""
    prompts(tmp_path, 30)
    worst = 21 + 1024 + 100
    with serving() as server:
        with pytest.raises(DiceError, match=r"the budget allows no further answer: .* 1,1\d\d may follow; 2\d answers"):
            asked(tmp_path, server.url, budget={"tokens": worst + 50}, concurrency=4)
        some = len(server.answered)
        assert 11 * (some - 1) + worst <= worst + 50 < 11 * some + worst + 1
        price = {"prices": PRICES}
        most = (1045 * 2 + 100 * 10) / 1e6
        with pytest.raises(DiceError, match=r"0\.\d+ of 0.00\d+ are spent"):
            asked(tmp_path, server.url, budget={"money": most + 10 * 78 / 1e6}, **price)
        # the first answers had no price when they came: they count at today's
        assert len(server.answered) in (10, 11)
        assert len(asked(tmp_path, server.url, budget={"money": 1.0}, **price)) == 30
    assert set(server.answered.values()) == {1}
    with pytest.raises(DiceError, match=r"budget\.money needs prices"):
        asked(tmp_path, "http://x/v1", budget={"money": 1.0})


def test_without_usage_there_is_no_budget(tmp_path):
    prompts(tmp_path, 2)
    with serving(lambda body, attempt: Reply(body=completion(body, usage=None))) as server:
        for _ in range(2):
            with pytest.raises(DiceError, match="no budget can be kept"):
                asked(tmp_path, server.url, budget={"tokens": 10**6}, concurrency=1)
        assert len(server.answered) == 1
        assert [row.n_tokens for row in asked(tmp_path, server.url)] == [None, None]


def test_the_servers_own_waits_are_heeded(tmp_path, monkeypatch):
    prompts(tmp_path, 1)
    waits: list[float] = []

    async def sleep(seconds):
        waits.append(seconds)

    monkeypatch.setattr(anyio, "sleep", sleep)
    with serving(lambda body, attempt: Reply(429, {"Retry-After": "7"}) if attempt < 3 else Reply()) as server:
        asked(tmp_path, server.url)
        assert waits == [7, 7]
        assert json.loads((tmp_path / "generations.jsonl.manifest.json").read_text())["extra"]["retried"] == 2
    waits.clear()
    with serving(lambda body, attempt: Reply(503)) as server:
        with pytest.raises(HarnessError, match="error 503 in 8 tries"):
            asked(tmp_path, server.url, {"seed": 1}, tries=8)
        assert sum(server.attempts.values()) == 8
    assert len(waits) == 7
    assert max(waits) <= 8
    assert waits[0] < waits[2] < waits[4], "the waits grow"
    with serving(lambda body, attempt: Reply(429, {"Retry-After": "86400"})) as server:
        with pytest.raises(HarnessError, match="it asks to wait 86400 s"):
            asked(tmp_path, server.url, {"seed": 2})
        assert sum(server.attempts.values()) == 1
    assert len(waits) == 7


@pytest.mark.parametrize(
    ("reply", "kind", "sentence"),
    [
        (
            Reply(401, body={"error": {"message": f"Incorrect API key: {KEY}"}}),
            DiceError,
            "refuses the key in DICE_TEST",
        ),
        (Reply(403, body={"error": {"message": f"{KEY} may not"}}), DiceError, r"\(403\): .*\[key\] may not"),
        (Reply(404, body={"error": {"message": "no"}}), DiceError, "no model 'm-1' there"),
        (
            Reply(400, body={"error": {"message": "temperature: unknown field"}}),
            DiceError,
            "temperature: unknown field",
        ),
        (Reply(body=b"<html>hello</html>"), HarnessError, "no chat completion"),
        (Reply(body={"choices": []}), HarnessError, "no choices"),
        (Reply(body=b'{"choices": ['), HarnessError, "no chat completion"),
    ],
)
def test_what_ends_a_run_is_one_sentence(tmp_path, reply, kind, sentence):
    prompts(tmp_path, 2)
    with serving(lambda body, attempt: reply) as server, pytest.raises(kind, match=sentence) as found:
        asked(tmp_path, server.url, concurrency=1)
    assert sum(server.attempts.values()) == 1
    assert KEY not in str(found.value)
    assert "\n" not in str(found.value)
    assert found.type is kind


def test_after_an_error_what_is_under_way_is_kept(tmp_path, monkeypatch):
    prompts(tmp_path, 8)
    failed = threading.Event()
    ask = Client.ask

    async def told(*arguments):
        try:
            return await ask(*arguments)
        except DiceError:
            failed.set()  # the client knows of the error before the server gives another answer
            raise

    monkeypatch.setattr(Client, "ask", told)
    with serving(lambda body, attempt: Reply(404) if number_of(body) == 1 else Reply(after=failed)) as server:
        with pytest.raises(DiceError, match="no model"):
            asked(tmp_path, server.url, concurrency=3)
        assert len(server.answered) == 2
    assert len(lines(tmp_path / "answers.jsonl")) == 2


@pytest.mark.parametrize(("value", "sentence"), [("", "is not set"), ("sk-a\nb", "white space, or characters")])
def test_a_key_that_cannot_be_used(tmp_path, monkeypatch, value, sentence):
    prompts(tmp_path, 1)
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(DiceError, match=rf"the environment variable {VARIABLE} .*{sentence}"):
        asked(tmp_path, "http://127.0.0.1:9/v1")


@pytest.mark.parametrize(
    ("server", "sentence"),
    [
        ({"key": KEY}, "'server.key'"),
        ({"base_url": f"https://me:{KEY}@host/v1"}, "no user, key or query"),
        ({"base_url": f"https://host/v1?key={KEY}"}, "no user, key or query"),
        ({"base_url": "host/v1"}, "must be http"),
        ({"base_url": None}, "either base_url or local"),
        ({"extra": {"n": 4}}, "extra cannot give n"),
    ],
)
def test_settings_that_are_refused(tmp_path, server, sentence):
    with pytest.raises(DiceError, match=sentence) as found:
        parse_config(AskConfig, spec(tmp_path, "http://host/v1", **server), "test")
    assert KEY not in str(found.value)


def test_no_other_servers_key_is_sent(tmp_path, monkeypatch):
    prompts(tmp_path, 1)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving() as server:
        asked(tmp_path, server.url, key=None)
    assert server.keys == {"Bearer none"}


def test_a_server_that_repeats_the_key_does_not_get_it_written(tmp_path):
    prompts(tmp_path, 1)
    said = {"content": f"the key is {KEY}", "reasoning": f"Bearer {KEY}"}
    with serving(lambda body, attempt: Reply(body=completion(body, message=said))) as server:
        (row,) = asked(tmp_path, server.url)
    assert (row.text, row.thought) == ("the key is [key]", "Bearer [key]")
    assert not [path for path in tmp_path.iterdir() if KEY in path.read_text()]


@pytest.mark.parametrize(
    ("changes", "thought", "text", "finish"),
    [
        ({"message": {"content": FENCE, "reasoning": "let me see"}}, "let me see", FENCE, "stop"),
        ({"message": {"content": FENCE, "reasoning_content": "so"}}, "so", FENCE, "stop"),
        ({"message": {"content": f"<think>\na ``` b\n</think>\n\n{FENCE}"}}, "a ``` b", FENCE, "stop"),
        ({"message": {"content": f"draft</think>{FENCE}"}}, "draft", FENCE, "stop"),
        ({"message": {"content": None, "reasoning": "too long"}, "finish_reason": "length"}, "too long", "", "length"),
        ({"message": {"content": "<think>never ends"}, "finish_reason": "length"}, "never ends", "", "length"),
        ({"message": {"content": ""}, "finish_reason": "content_filter"}, None, "", "refused"),
    ],
)
def test_thoughts_are_no_part_of_the_answer(tmp_path, changes, thought, text, finish):
    prompts(tmp_path, 1)
    with serving(lambda body, attempt: Reply(body=completion(body, **json.loads(json.dumps(changes))))) as server:
        (row,) = asked(tmp_path, server.url)
    assert (row.thought, row.text, row.finish_reason) == (thought, text, finish)
    assert (row.code is None) == (text == "")


def test_a_text_without_reasoning_is_left_as_it_is():
    assert split_thought("  x <think> y") == (None, "  x <think> y")


def test_reasoning_is_paid_where_only_the_total_counts_it(tmp_path):
    prompts(tmp_path, 1)
    usage = {"prompt_tokens": 4, "completion_tokens": 7, "total_tokens": 111}
    usage |= {"completion_tokens_details": {"reasoning_tokens": 100}}
    with serving(lambda body, attempt: Reply(body=completion(body, usage=usage))) as server:
        (row,) = asked(tmp_path, server.url, prices=PRICES)
    assert row.n_tokens == 107
    facts = json.loads((tmp_path / "generations.jsonl.manifest.json").read_text())["extra"]
    assert facts["reasoning_tokens"] == 100
    assert facts["cost"] == pytest.approx((4 * 2 + 107 * 10) / 1e6)


def test_a_prompt_that_is_too_long_is_that_problems_failure(tmp_path):
    prompts(tmp_path, 3)
    said = {"error": {"message": "This model's maximum context length is 8192 tokens.", "code": 400}}
    with serving(lambda body, attempt: Reply(400, body=said) if number_of(body) == 1 else Reply()) as server:
        rows = asked(tmp_path, server.url, budget={"tokens": 10**6})
        assert asked(tmp_path, server.url) == rows
        assert sum(server.attempts.values()) == 3
    assert [row.finish_reason for row in rows] == ["stop", "refused", "stop"]
    assert rows[1].code is None
    facts = json.loads((tmp_path / "generations.jsonl.manifest.json").read_text())["extra"]
    assert facts["refused"] == 1


def test_another_model_is_no_answer_but_is_not_paid_twice(tmp_path):
    prompts(tmp_path, 2)
    with serving(lambda body, attempt: Reply(body=completion(body, model="m-2"))) as server:
        for _ in range(2):
            with pytest.raises(DiceError, match="is of 'm-2', and this row is of m-1; give another model a row"):
                asked(tmp_path, server.url, {"models": ["m-1"]}, concurrency=1)
        assert sum(server.attempts.values()) == 1


def test_two_runs_do_not_pay_for_the_same(tmp_path):
    prompts(tmp_path, 1)
    asking, go = threading.Event(), threading.Event()

    def behave(body, attempt):
        asking.set()
        return Reply(after=go)

    with serving(behave) as server:
        other = threading.Thread(target=asked, args=(tmp_path, server.url))
        other.start()
        asking.wait()
        with pytest.raises(DiceError, match="another dice ask works on it"):
            asked(tmp_path, server.url)
        go.set()
        other.join()
        assert sum(server.attempts.values()) == 1


def test_without_the_package_openai_one_sentence_names_the_extra(tmp_path):
    prompts(tmp_path, 1)
    (tmp_path / "openai.py").write_text("raise ModuleNotFoundError(\"No module named 'openai'\", name='openai')")
    done = subprocess.run(
        [sys.executable, "-m", "dice.cli", "ask", "--config", json.dumps(spec(tmp_path, "http://127.0.0.1:9/v1"))],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "dice ask: needs the package 'openai': pip install 'dice-repro[api]'.\n"
