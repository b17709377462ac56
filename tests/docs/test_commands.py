"""Every command in the documentation is one that the real parsers accept."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from pages import PAGES, ROOT, command_lines, name, spans

from dice.cli import STAGES, make_parser


@cache
def parser():
    return make_parser(*STAGES)


def dice_words(words: list[str]) -> list[str] | None:
    """What follows `dice` in a command line, also behind a launcher, a lease or a path; None: no such command."""
    for place, word in enumerate(words):
        if word in ("dice", ".venv/bin/dice"):
            return words[place + 1 :]
        if word == "dice.cli" and words[place - 1] == "-m":
            return words[place + 1 :]
    return None


def refusal(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Why the parser refuses `dice <words>`; empty when it does not."""
    try:
        parser().parse_args(words)
    except SystemExit as end:
        return "" if end.code == 0 else capsys.readouterr().err.strip().splitlines()[-1]
    return ""


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_dice_command_lines_parse(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused = {}
    for words in command_lines(page):
        wanted = dice_words(words)
        if wanted is not None and (reason := refusal(wanted, capsys)):
            refused[" ".join(words)] = reason
    assert not refused


def options(stage: str) -> set[str]:
    """Every option string of a stage."""
    return set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", make_parser(stage).parse_args([stage, "--help"]) or ""))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_stages_in_running_text_exist(page: Path) -> None:
    wrong = []
    for text in spans(page):
        match = re.fullmatch(r"dice ([a-z]+)(?: .*)?", text)
        if match and match.group(1) not in STAGES:
            wrong.append(text)
    assert not wrong


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_make_targets_exist(page: Path) -> None:
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+)(?= .*:|:)", rules, re.M)) | set(
        re.findall(r"[\w-]+", " ".join(re.findall(r"^\.PHONY:(.*)$", rules, re.M)))
    )
    lines = [words for words in command_lines(page) if words[0] == "make"]
    lines += [text.split() for text in spans(page) if text.startswith("make ")]
    wanted = {word for words in lines for word in words[1:] if "=" not in word and not word.startswith("-")}
    assert wanted <= targets


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_benchmark_options_exist(page: Path) -> None:
    wrong = []
    for words in command_lines(page):
        scripts = [place for place, word in enumerate(words) if re.fullmatch(r"benchmarks/\w+\.py", word)]
        for place in scripts[:1]:
            source = (ROOT / words[place]).read_text(encoding="utf-8")
            used = [word.partition("=")[0] for word in words[place + 1 :] if re.match(r"--[a-z]", word)]
            wrong += [f"{words[place]} {option}" for option in used if f'"{option}"' not in source]
    assert not wrong
