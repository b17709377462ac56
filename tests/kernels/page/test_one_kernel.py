"""The files of a page: what they hold, and when one was saved."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from execution import HONEST, PROBLEM

from dice import cli
from dice.errors import DiceError
from dice.kernels.page.one_kernel import Files, saves


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = Files(tmp_path / "kernel.py", tmp_path / "model.py")
    made.kernel.write_text(HONEST)
    made.reference.write_text(PROBLEM)
    return made


def test_the_job_is_what_the_files_hold(files: Files) -> None:
    job = files.job()
    assert (job.problem_id, job.code, job.problem_code) == ("model", HONEST, PROBLEM)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("reference", "x = 1", "does not define Model"),
        ("reference", "def", "parse"),
        ("reference", None, "read"),
        ("kernel", None, "read"),
    ],
)
def test_files_that_cannot_be_used_are_named(files: Files, name: str, text: str | None, words: str) -> None:
    path: Path = getattr(files, name)
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    with pytest.raises(DiceError, match=words) as raised:
        files.job()
    assert str(path) in str(raised.value)


def renamed_over(files: Files) -> None:
    """As editors save: the text is the same."""
    new = files.kernel.with_suffix(".new")
    new.write_text(HONEST)
    new.replace(files.kernel)


@pytest.mark.parametrize(
    "save",
    [
        lambda files: files.kernel.write_text(HONEST + "# more"),
        lambda files: files.reference.write_text(PROBLEM + "# more"),
        lambda files: files.kernel.unlink(),
        renamed_over,
    ],
)
def test_a_save_of_either_file_is_seen(files: Files, save: Callable[[Files], object]) -> None:
    looks = itertools.count()

    def wait() -> None:
        if next(looks) == 2:
            save(files)

    rounds = saves(files, wait)
    next(rounds)
    assert next(looks) == 0  # the first page waits for nothing
    next(rounds)
    assert next(looks) == 3


def test_a_save_while_a_page_is_made_is_not_lost(files: Files) -> None:
    def never() -> None:
        raise AssertionError("nothing to wait for")

    rounds = saves(files, never)
    next(rounds)
    files.kernel.write_text(HONEST + "# saved meanwhile")
    next(rounds)


@pytest.mark.parametrize(
    "arguments",
    [
        ["kernel.py"],
        ["kernel.py", "--reference", "model.py", "--out", "x.jsonl"],
        ["--reference", "model.py", "--candidates", "x", "--out", "y"],
        ["--watch", "--candidates", "x", "--out", "y"],
        ["missing.py", "--reference", "missing.py"],
    ],
)
def test_what_does_not_go_together_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["verify", *arguments]) == 2
    assert capsys.readouterr().err.startswith("dice verify: ")
