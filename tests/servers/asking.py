"""What the tests of `dice ask` ask and read: prompts with a number, the stage's settings, lines of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dice.config import parse_config
from dice.evaluation.generation import Generation
from dice.evaluation.prompts import prompt_sha256
from dice.evaluation.prompts.stage import PromptRow
from dice.jsonl import write_jsonl
from dice.servers.ask import AskConfig, ask

KEY = "sk-planted-4f1c9b7e"
VARIABLE = "DICE_TEST_KEY"
FENCE = "```python\nclass ModelNew: ...\n```"
PRICES = {"prompt": 2.0, "completion": 10.0}


def prompts(folder: Path, number: int) -> list[PromptRow]:
    """Prompts of 4 words, each with its number, in the folder's prompts.jsonl."""
    texts = [f"write kernel number {n}" for n in range(number)]
    rows = [
        PromptRow(id=f"level1/{n}_p", task="end_to_end", prompt_sha256=prompt_sha256(text), prompt=text)
        for n, text in enumerate(texts)
    ]
    write_jsonl(folder / "prompts.jsonl", rows)
    return rows


def lines(path: Path) -> list[str]:
    """Of a file that need not be there yet."""
    return path.read_text().splitlines() if path.exists() else []


def number_of(body: dict) -> int:
    return int(body["messages"][0]["content"].split()[-1])


def spec(folder: Path, url: str | None, changes: dict | None = None, **server) -> dict:
    files = {"prompts": "prompts.jsonl", "answers": "answers.jsonl", "out": "generations.jsonl"}
    values: dict[str, Any] = {"max_new_tokens": 100}
    values |= {name: str(folder / file) for name, file in files.items()}
    if url is not None:
        values["server"] = {"base_url": url, "model": "m-1", "key": VARIABLE} | server
    return values | (changes or {})


def asked(folder: Path, url: str | None, changes: dict | None = None, **server) -> list[Generation]:
    return ask(parse_config(AskConfig, spec(folder, url, changes, **server), "test"))
