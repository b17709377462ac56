"""The tutorials' blocks run, in order, in a folder with the checkout's experiments/, and print what the page shows.

A fence says what to do with its block: ```` ```sh run ```` runs it, ```` ```python file=NAME ```` writes it to a file,
```` ```text output ```` is what the block before it prints (`...` stands for anything). A page with a block marked `slow`
is run by `make test-all` only.
"""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT, Block, blocks, name


def marked(page: Path) -> list[Block]:
    """A page's blocks that say what to do with them."""
    return [block for block in blocks(page) if len(block.words) > 1]


TUTORIALS = [
    page for page in sorted((ROOT / "docs").rglob("*.md")) if any("run" in block.words for block in marked(page))
]


def play(page: Path, folder: Path) -> None:
    """Do what the page's blocks say, in `folder`. Fails with the block that fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    printed = ""
    for block in marked(page):
        language, *orders = block.words
        place = f"{name(page)}:{block.line}"
        files = [order.removeprefix("file=") for order in orders if order.startswith("file=")]
        if files:
            (folder / files[0]).parent.mkdir(parents=True, exist_ok=True)
            (folder / files[0]).write_text(block.text, encoding="utf-8")
        elif "output" in orders:
            same = doctest.OutputChecker().check_output(block.text, printed, doctest.ELLIPSIS)
            assert same, f"{place}: expected\n{block.text}\nprinted\n{printed}"
        else:
            assert "run" in orders, f"{place}: '{block.info}' is nothing that a tutorial can say"
            command = {"sh": ["bash", "-eu", "-o", "pipefail"], "python": [sys.executable]}[language]
            done = subprocess.run(
                [*command, "-"] if language == "python" else command,
                input=block.text,
                text=True,
                capture_output=True,
                cwd=folder,
                env={**os.environ, "PATH": path},
                check=False,
            )
            assert done.returncode == 0, f"{place}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
            printed = done.stdout


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if any("slow" in block.words for block in marked(page)) else [])
        for page in TUTORIALS
    ],
    ids=name,
)
def test_a_tutorial_does_what_it_says(page: Path, tmp_path: Path) -> None:
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")  # what a tutorial takes from the checkout
    play(page, tmp_path)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("```sh run\nexit 3\n```\n", "exit code 3"),
        ("```sh run\nfalse | true\n```\n", "exit code 1"),
        ("```sh run\necho one two\n```\n```text output\none three\n```\n", "expected"),
        ("```python file=a.py\nprint(1)\n```\n```sh run\npython a.py\n```\n```text output\n2\n```\n", "expected"),
        ("```sh rnu\ntrue\n```\n", "nothing that a tutorial can say"),
    ],
)
def test_a_block_that_does_otherwise_fails(tmp_path: Path, text: str, fault: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(AssertionError, match=fault):
        play(page, tmp_path)


def test_ellipses_stand_for_anything(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```sh run\necho one two three\n```\n```text output\none ... three\n```\n")
    play(page, tmp_path)
