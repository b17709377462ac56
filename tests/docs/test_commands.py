"""Every command in the documentation is one that the real parsers accept."""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import itertools
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from pages import PAGES, ROOT, command_lines, name, spans

from dice.cli import STAGES, make_parser

SHELL = (">", ">>", "2>&1", "|", "&", "&&")
"""Words that end a command's own."""


@cache
def parser() -> argparse.ArgumentParser:
    """The command line with the arguments of all stages."""
    return make_parser(*STAGES)


def after_dice(words: list[str]) -> list[str] | None:
    """What follows `dice` in a command line, also behind a launcher, a lease or a path; None: no such command."""
    for place, word in enumerate(words):
        if word in ("dice", ".venv/bin/dice") or (word == "dice.cli" and words[place - 1] == "-m"):
            return list(itertools.takewhile(lambda word: word not in SHELL, words[place + 1 :]))
    return None


def refused(page: Path) -> list[str]:
    """Command lines of `dice` in a page's blocks that the parser refuses, with its reason."""
    found = []
    for words in command_lines(page):
        wanted = after_dice(words)
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
                parser().parse_args(wanted or ["--version"])
        except SystemExit as end:
            if end.code != 0:
                found.append(f"{' '.join(words)}: {said.getvalue().strip().splitlines()[-1]}")
    return found


def unknown_stages(page: Path) -> list[str]:
    """`dice X` in running text where X is no stage."""
    named = (re.match(r"dice ([a-z]+)\b", text) for text in spans(page))
    return [match.group(1) for match in named if match and match.group(1) not in STAGES]


def unknown_targets(page: Path) -> set[str]:
    """`make X` where the Makefile has no X."""
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(" ".join(re.findall(r"^([\w \-]+):(?!=)", rules, re.M)).split())
    lines = [words for words in command_lines(page) if words[0] == "make"]
    lines += [text.split() for text in spans(page) if text.startswith("make ")]
    return {word for words in lines for word in words[1:] if re.fullmatch(r"[a-z][\w-]*", word)} - targets


def unknown_options(page: Path) -> list[str]:
    """Options of a script in benchmarks/ that its source does not name."""
    return unknown_in(command_lines(page))


def unknown_in(lines: Iterable[list[str]]) -> list[str]:
    """The same of command lines as words."""
    wrong = []
    for words in lines:
        script = next((place for place, word in enumerate(words) if re.fullmatch(r"benchmarks/\w+\.py", word)), None)
        if script is not None:
            source = (ROOT / words[script]).read_text(encoding="utf-8")
            options = [word.partition("=")[0] for word in words[script + 1 :] if re.match(r"--[a-z]", word)]
            wrong += [f"{words[script]} {option}" for option in options if f'"{option}"' not in source]
    return wrong


def test_a_benchmark_has_the_options_that_its_own_text_shows() -> None:
    shown = []
    for script in sorted((ROOT / "benchmarks").glob("*.py")):
        text = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or ""
        shown += [re.findall(r"[\w./]+\.py|--[a-z][\w-]*", line) for line in commands_in(text)]
    assert len(shown) > 30
    assert unknown_in(shown) == []


def commands_in(text: str) -> list[str]:
    """The lines of an indented block that call a script, each with those behind it that are indented further."""
    return re.findall(r"^    \S*(?:python|torchrun) .*benchmarks/.*(?:\n {8}.*)*", text, re.M)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_are_real(page: Path) -> None:
    assert refused(page) == []
    assert unknown_stages(page) == []
    assert unknown_targets(page) == set()
    assert unknown_options(page) == []


def test_commands_that_are_not_real_are_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "`dice nothing` and `make nothing`, then\n\n```sh\n"
        "dice verify --candidates a --no-such-option\n"
        "torchrun --nproc-per-node 2 -m dice.cli sft --engine \\\n  no_such_engine\n"
        "dice table   # fine\n"
        "make nowhere CPU=1\n"
        "python benchmarks/decoding.py --sizes 4b --no-such-option\n```\n\n    dice nothing_either\n"
    )
    assert len(refused(page)) == 3
    assert unknown_stages(page) == ["nothing"]
    assert unknown_targets(page) == {"nothing", "nowhere"}
    assert unknown_options(page) == ["benchmarks/decoding.py --no-such-option"]
