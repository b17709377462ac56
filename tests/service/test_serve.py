"""`dice serve` as a process: it is killed at any moment, and so are the processes below it; no job is lost or doubled."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import Counter
from pathlib import Path

import httpx2
import pytest
from service_start import server
from waiting import wait_for

from dice.cli import main
from dice.service.client import Client
from dice.service.schema import Candidate

TOKEN = "0123456789abcdef"
PROBLEM = "level1/1_LeakyReLU"
ANSWER = """import torch
class ModelNew(torch.nn.Module):
    def __init__(self, *arguments):
        super().__init__()
    def forward(self, x):
        return torch.nn.functional.leaky_relu(x, 0.1)
"""
STATUSES = {
    "": "deceptive",
    "raise ValueError": "import_error",
    "ModelNew.forward = lambda self, x: x + 1": "wrong_value",
}


def candidates() -> dict[str, Candidate]:
    codes = [f"{ANSWER}{line}\n# {number}" for number in range(3) for line in STATUSES]
    return {code: Candidate(problem_id=PROBLEM, code=code) for code in codes}


def expected(code: str) -> str:
    return STATUSES[code.removeprefix(ANSWER).partition("\n")[0]]


def children(pid: int) -> list[int]:
    found = [file.read_text().split() for file in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(child) for part in found for child in part]


def health(url: str) -> dict:
    try:
        return httpx2.get(f"{url}/health").json()
    except httpx2.TransportError:
        return {"running": 0}


def test_kills_lose_nothing_and_double_nothing(tmp_path):
    state, env = tmp_path / "state", {"DICE_SERVICE_TOKENS": f"ann={TOKEN}", "DICE_SERVICE_TOKEN": ""}
    options = ["--state", str(state), "--problems", "mini", "--trials", "1", "--jobs", "2"]
    wanted = candidates()
    found: list[tuple[int, str]] = []
    said: list[str] = []

    def ask(url: str) -> None:
        with Client(url, TOKEN) as client:
            for number, verdicts in client.verify_all(wanted.values()):
                found.append((number, verdicts[0].status))
                said.append(verdicts[0].message)

    with server(*options, env=env) as (process, url):
        asking = threading.Thread(target=ask, args=(url,))
        asking.start()
        wait_for(lambda: health(url)["running"], "a job in the pool")
        process.send_signal(signal.SIGKILL)
    before = [json.loads(line) for line in (state / "jobs.jsonl").read_text().splitlines()[1:]]
    kinds = Counter(event["event"] for event in before)
    assert kinds["finished"] < kinds["accepted"]  # it was killed at work
    with server(*options, "--port", url.rpartition(":")[2], env=env) as (process, url):
        # Those that were left may all end between two looks.
        wait_for(lambda: health(url)["running"] or not asking.is_alive(), "a job in the pool, or the last verdict")
        for child in children(process.pid):  # fork servers, with all workers and candidates below them
            if b"resource_tracker" not in Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(child, signal.SIGKILL)
        asking.join()
        text = httpx2.get(f"{url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).text
        process.terminate()
        assert process.wait() == -signal.SIGTERM
    statuses = [status for _, status in sorted(found)]
    assert statuses == [expected(list(wanted)[number]) for number, _ in sorted(found)], said
    assert len(found) == len(wanted)
    counted = sum(
        float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith("dice_verdicts_total{")
    )
    assert counted == len(wanted) - kinds["finished"]  # what had its verdict before was not verified again
    events = [json.loads(line) for line in (state / "jobs.jsonl").read_text().splitlines()[1:]]
    assert Counter(event["id"] for event in events if event["event"] == "finished").most_common(1)[0][1] == 1
    assert not any(TOKEN.encode() in path.read_bytes() for path in state.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--problems mini --host 0.0.0.0", "set DICE_SERVICE_TOKENS"),
        ("", "--client-problems"),
        ("--problems nowhere", "nowhere"),
        ("--problems mini --host 192.0.2.1", "choose another"),
    ],
)
def test_a_service_that_cannot_be_says_why(tmp_path, monkeypatch, capsys, options, told):
    monkeypatch.setenv("DICE_SERVICE_TOKENS", TOKEN if "192" in options else "")
    assert main(["serve", "--state", str(tmp_path / "state"), "--backend", "cpu", *options.split()]) == 2
    words = capsys.readouterr().err
    assert (words.count("\n"), told in words) == (1, True), words
