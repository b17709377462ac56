"""The project's pages, read as Markdown: code blocks, code in running text, and which words of them are commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"),  # a changelog keeps its old names
    *sorted(path for folder in ("containers", "experiments", "results") for path in (ROOT / folder).rglob("README.md")),
]


@dataclass(frozen=True)
class Block:
    """One block of code: `info` is what stands behind the fence, empty for an indented block."""

    page: Path
    line: int
    info: str
    text: str

    @property
    def words(self) -> list[str]:
        """The fence's words: the language, then what the tests are told about the block."""
        return self.info.split()


def blocks(page: Path) -> list[Block]:
    """All blocks of code of a page, in order."""
    return [
        Block(page, (token.map or [0])[0] + 1, token.info.strip(), token.content)
        for token in MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
        if token.type in ("fence", "code_block")
    ]


def spans(page: Path) -> list[str]:
    """All code inside running text and table cells of a page."""
    tokens = MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))
    return [child.content for token in tokens for child in token.children or () if child.type == "code_inline"]


SHELLS = ("", "sh", "bash", "console")


def command_lines(page: Path) -> Iterator[list[str]]:
    """The words of every command line in a page's blocks; comments and continued lines as a shell reads them."""
    for block in blocks(page):
        if block.words[:1] in [[shell] for shell in SHELLS] or not block.words:
            for line in block.text.replace("\\\n", " ").splitlines():
                try:
                    words = shlex.split(line, comments=True)
                except ValueError:  # not a command: a quotation mark in a drawing, a line of a here-document
                    continue
                if words:
                    yield words


def name(page: Path) -> str:
    """A page's path, for test ids."""
    return str(page.relative_to(ROOT)) if page.is_relative_to(ROOT) else page.name
