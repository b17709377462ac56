"""The repository's own papers: versions agree, links lead somewhere."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import dice

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "containers").glob("*.md"),
    *(ROOT / "experiments").rglob("*.md"),
]  # docs: the site
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)[^)]*\)")


def test_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert project["version"] == dice.__version__ == citation["version"]
    assert project["license"] == citation["license"]


def test_the_citation_names_the_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    paper = citation["preferred-citation"]
    assert paper["url"] == "https://arxiv.org/abs/2602.11715"
    assert [author["family-names"] for author in paper["authors"]] == ["Bai", "Kong", "Chen", "Wang", "Tao", "Wang"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    dead = [link for link in _LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert not dead


def test_the_readme_names_the_papers_beside_it():
    text = (ROOT / "README.md").read_text()
    for name in ("CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff", "LICENSE"):
        assert f"]({name})" in text


def _sleeps(source: str) -> bool:
    calls = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return any(isinstance(call, ast.Attribute) and ast.unparse(call) == "time.sleep" for call in calls)


def test_no_test_sleeps():
    """A time that is long enough on one machine is too short on another: tests wait for events (`tests/waiting.py`).

    The texts of candidates and other programs in the tests are strings, and none of this.
    """
    assert _sleeps("import time\ntime.sleep(1)")
    assert not _sleeps("CANDIDATE = 'time.sleep(1)'")
    sleepers = {path.name for path in (ROOT / "tests").rglob("*.py") if _sleeps(path.read_text())}
    candidates = {path.name for kind in ("tricks", "honest") for path in (ROOT / "tests" / "red_team" / kind).iterdir()}
    # test_clock.py holds a process up for half of the time, which is what it tests
    assert sleepers - candidates == {"test_clock.py", "waiting.py"}
