"""The site is built strictly: what is broken in it fails the build. And the generated pages hold what the code has."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import generated
from corpus import corpus
from pages import ROOT

from dice.cli import STAGES, make_parser
from dice.data.synthetic.table import known
from dice.kernels import api
from dice.kernels.checks.catalogue import CATALOGUE

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


def test_everything_that_is_broken_fails_the_build(tmp_path: Path) -> None:
    broken = {
        "index.md": "# Start\n\n[a](gone.md), [b](other.md#gone-there), [c](#gone-here)\n\n```{toctree}\nother\nlost\n```\n",
        "other.md": "# Other\n\n## A heading\n\n![picture](gone.svg)\n\n```pythn\nx\n```\n",
        "alone.md": "# Alone\n",
    }
    done = build(tmp_path, broken)
    assert done.returncode != 0
    for sentence in (
        "'gone.md'",
        "'gone-there'",
        "'gone-here'",
        "nonexisting document 'lost'",
        "gone.svg",
        "pythn",
        "alone.md: WARNING: document isn't included in any toctree",
    ):
        assert sentence in done.stderr
    assert done.stderr.count("WARNING") == 7


def test_a_page_cannot_ask_for_what_nothing_generates(tmp_path: Path) -> None:
    done = build(tmp_path, GOOD | {"other.md": "# Other\n\n## A heading\n\n<!-- generated: gone -->\n"})
    assert done.returncode != 0
    assert "nothing generates 'gone'" in done.stderr


def test_every_generator_has_a_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md"))
    assert set(generated.PLACE.findall(text)) == set(generated.GENERATORS)


def test_every_command_and_argument_is_described() -> None:
    text = generated.commands()
    for stage in STAGES:
        section = text.partition(f"## dice {stage}\n")[2].partition("\n## ")[0]
        assert [option for option in options_of(stage) if f"`{option}`" not in section] == ["-h", "--help"], stage


def test_commands_keep_their_capitals_and_say_what_is_required() -> None:
    text = generated.commands()
    assert "\nVerify for others over HTTP (" in text
    assert "| `--verdicts` | Verdicts of the model, one file for each seed. (required) |" in text
    assert "| `recorded` | recorded studies (default: those in results/recorded) |" in text
    assert "| `--out` | folder to write; each study gets one below it, which is replaced; required |" in text
    assert "| `--tables` | CSV files of tables; none: all in `results`. |" in text
    assert "None" not in text


def test_settings_speak_of_what_stands_in_a_file() -> None:
    text = generated.settings()
    assert not re.search(r"\b(None|True|False)\b", text)
    assert (
        "| `seed` | integer or `null` | `null` | Seed of inputs and weights; `null`: a secret one for each candidate."
        in text
    )
    assert "| `explain` | `true` or `false` | `false` | Say more" in text


def test_every_setting_is_described() -> None:
    text = generated.settings()
    for config in generated.roots().values():
        for group in generated.groups(config):
            section = text.partition(f"### {group.__name__}\n")[2].partition("\n### ")[0]
            for name, field in group.__pydantic_fields__.items():
                assert f"| `{name}` |" in section
                assert field.description, f"{group.__name__}.{name} has no docstring"


def test_stages_with_settings_are_known() -> None:
    with_config = {stage for stage in STAGES if "--config" in options_of(stage)}
    assert with_config == {stage for stage in STAGES if generated.config_of(stage)}


def test_the_api_page_has_every_name() -> None:
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\.\. auto\w+:: (\w+)$", page, re.M)) | set(re.findall(r"\[(\w+)\]\(settings", page))
    assert documented == set(api.__all__)


def test_every_finding_and_family_is_described() -> None:
    text = generated.findings()
    assert [finding for finding in CATALOGUE if f"| `{finding}` |" not in text] == []
    text = generated.operators()
    assert [name for name in known() if not re.search(rf"\b{name}\b", text)] == []


def test_published_tricks_are_those_of_the_red_team() -> None:
    page = (ROOT / "docs" / "reference" / "tricks.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if re.match(r"\| \d", line)]
    numbers = {n for row in rows for part in row[0].strip("| ").split(", ") for n in numbers_in(part)}
    used = {int(n) for trick in corpus("tricks") for n in re.findall(r"\d+", trick.header.get("catalogue", ""))}
    assert used <= numbers
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row[-1])}
    assert named <= set(CATALOGUE) | set(get_args(api.Status))


def numbers_in(text: str) -> range:
    """`3` or `3-5` as numbers."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def options_of(stage: str) -> list[str]:
    """Every option string of a stage."""
    (stages,) = (a.choices for a in make_parser(stage)._actions if isinstance(a.choices, dict) and stage in a.choices)
    return [option for action in stages[stage]._actions for option in action.option_strings]
