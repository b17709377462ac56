"""The site is built strictly: what is broken in it fails the build. And the generated pages hold what the code has."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT

sys.path.insert(0, str(ROOT / "docs" / "_ext"))
import generated  # type: ignore[import-not-found]

from dice.cli import STAGES, make_parser

GOOD = {
    "index.md": "# Start\n\n[there](other.md#a-heading)\n\n```{toctree}\nother\n```\n",
    "other.md": "# Other\n\n## A heading\n\n[back](index.md)\n",
}


def build(folder: Path, pages: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Build a small site with the real settings and the real command's strictness."""
    source = folder / "docs"
    source.mkdir()
    shutil.copy(ROOT / "docs" / "conf.py", source)
    shutil.copytree(ROOT / "docs" / "_ext", source / "_ext", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "docs" / "_static", source / "_static")
    for page, text in pages.items():
        (source / page).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", *strict_options(), str(source), str(folder / "out")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def strict_options() -> list[str]:
    """The options with which the Makefile calls Sphinx."""
    line = next(line for line in (ROOT / "Makefile").read_text().splitlines() if "sphinx-build" in line)
    return [word for word in line.split() if word.startswith("-")]


def test_a_sound_site_is_built(tmp_path: Path) -> None:
    done = build(tmp_path, GOOD)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "other.html").is_file()


@pytest.mark.parametrize(
    ("page", "text", "sentence"),
    [
        ("index.md", "# Start\n\n[gone](gone.md)\n\n```{toctree}\nother\n```\n", "'gone.md'"),
        ("index.md", "# Start\n\n[gone](other.md#gone)\n\n```{toctree}\nother\n```\n", "'gone'"),
        ("index.md", "# Start\n\n[gone](#gone)\n\n```{toctree}\nother\n```\n", "'gone'"),
        ("index.md", "# Start\n\n```{toctree}\nother\ngone\n```\n", "'gone'"),
        ("alone.md", "# Alone\n", "isn't included in any toctree"),
        ("other.md", "# Other\n\n## A heading\n\n![gone](gone.svg)\n", "gone.svg"),
        ("other.md", "# Other\n\n## A heading\n\n<!-- generated: gone -->\n", "nothing generates 'gone'"),
        ("other.md", "# Other\n\n## A heading\n\n```pythn\nx\n```\n", "pythn"),
    ],
)
def test_what_is_broken_fails_the_build(tmp_path: Path, page: str, text: str, sentence: str) -> None:
    done = build(tmp_path, GOOD | {page: text})
    assert done.returncode != 0
    assert sentence in done.stderr


def test_every_command_and_argument_is_described() -> None:
    text = generated.commands()
    for stage in STAGES:
        section = text.partition(f"## dice {stage}\n")[2].partition("\n## ")[0]
        assert [option for option in options_of(stage) if f"`{option}`" not in section] == ["-h", "--help"], stage


def test_every_setting_is_described() -> None:
    text = generated.settings()
    for config in generated.roots().values():
        for group in generated.groups(config):
            section = text.partition(f"### {group.__name__}\n")[2].partition("\n### ")[0]
            for name, field in group.__pydantic_fields__.items():
                assert f"| `{name}` |" in section
                assert field.description, f"{group.__name__}.{name} has no docstring"


def options_of(stage: str) -> list[str]:
    """Every option string of a stage."""
    (stages,) = (a.choices for a in make_parser(stage)._actions if a.choices and stage in a.choices)
    return [option for action in stages[stage]._actions for option in action.option_strings]
