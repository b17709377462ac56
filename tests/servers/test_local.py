"""A server that `dice ask` starts for itself: a stand-in with vLLM's command line (`chat_server.py`)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from asking import lines, prompts
from chat_server import __file__ as stand_in
from waiting import is_gone, wait_for

from dice.config import parse_config
from dice.errors import DiceError, HarnessError
from dice.evidence.chain import chain
from dice.servers.ask import AskConfig, ask


def command(folder: Path, text: str) -> str:
    """A program `vllm` that writes its process id and arguments, and then does `text`."""
    path = folder / "vllm"
    path.write_text(f'#!/bin/sh\necho $$ "$@" >> {folder}/started\n{text}\n')
    path.chmod(0o755)
    return str(path)


def spec(folder: Path, vllm: str, **local) -> dict:
    if not (folder / "model").exists():
        (folder / "model").mkdir()
        (folder / "model" / "model.safetensors").write_bytes(b"weights")
    files = {"prompts": "prompts.jsonl", "answers": "answers.jsonl", "out": "generations.jsonl"}
    values: dict = {name: str(folder / file) for name, file in files.items()}
    local |= {"checkpoint": str(folder / "model"), "command": [vllm]}
    return values | {"server": {"model": "Small-1B", "local": local}, "max_new_tokens": 50}


def run(values: dict) -> list:
    return ask(parse_config(AskConfig, values, "test"))


def test_it_is_started_asked_and_stopped(tmp_path, monkeypatch):
    prompts(tmp_path, 3)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # none is asked on the way to this machine
    vllm = command(tmp_path, f'exec {sys.executable} {stand_in} "$@"')
    rows = run(spec(tmp_path, vllm, arguments=["--dtype", "bfloat16"]))
    assert [row.problem_id for row in rows] == [f"level1/{n}_p" for n in range(3)]
    ((process, serve, checkpoint, *rest),) = [line.split() for line in lines(tmp_path / "started")]
    assert (serve, checkpoint) == ("serve", str(tmp_path / "model"))
    assert rest[:2] == ["--served-model-name", "Small-1B"]
    assert rest[-2:] == ["--dtype", "bfloat16"]
    assert is_gone(int(process))
    links = {Path(link.path).name: link for link in chain(str(tmp_path / "generations.jsonl"), tmp_path)}
    assert links["answers.jsonl"].state == links["model.safetensors"].state == "verified"
    assert links["answers.jsonl"].stage == "ask"
    assert run(spec(tmp_path, vllm)) == rows
    assert len(lines(tmp_path / "started")) == 1, "nothing was missing"
    (tmp_path / "model" / "model.safetensors").write_bytes(b"other weights")
    run(spec(tmp_path, vllm))
    assert len(lines(tmp_path / "started")) == 2
    assert len(lines(tmp_path / "answers.jsonl")) == 6
    with (tmp_path / "answers.jsonl").open("a") as stream:
        stream.write("\n")
    links = {Path(link.path).name: link for link in chain(str(tmp_path / "generations.jsonl"), tmp_path)}
    assert links["answers.jsonl"].state == "changed"


def test_it_does_not_outlive_a_killed_run(tmp_path):
    prompts(tmp_path, 1)
    vllm = command(tmp_path, f"touch {tmp_path}/ready; exec sleep 600")
    ask_it = [sys.executable, "-m", "dice.cli", "ask", "--config", json.dumps(spec(tmp_path, vllm))]
    asking = subprocess.Popen(ask_it)
    wait_for((tmp_path / "ready").exists, "the server started")
    asking.kill()
    asking.wait()
    process = int(lines(tmp_path / "started")[0].split()[0])
    wait_for(lambda: is_gone(process), "the server ended")


def test_one_that_cannot_start(tmp_path):
    prompts(tmp_path, 1)
    with pytest.raises(HarnessError, match="the server for Small-1B ended with code 5 before it answered"):
        run(spec(tmp_path, command(tmp_path, "exit 5")))
    with pytest.raises(DiceError, match=r"'no-vllm' is not installed here: .*pip install vllm.*local_rows=false"):
        run(spec(tmp_path, "no-vllm"))
