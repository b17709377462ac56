"""The code in a model's answer.

Rules, first that applies, after a closed `<think>...</think>` section has been dropped (its opening tag may be part of
the prompt, so a lone `</think>` ends one too):
1. Fenced blocks: the first that defines `class ModelNew`; otherwise the first that is Python or carries no language
   (KernelBench takes the first block whatever it holds). A fence that is never closed runs to the end of the text.
2. No fence: the longest stretch of lines that is valid Python and defines `class ModelNew`; prose around it is cut.
Anything else is `no_code`, with the reason.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from dice.python_text import parse_python

_FENCE = re.compile(r"^[ \t]*(?P<fence>`{3,}+|~{3,}+)[ \t]*+(?P<language>[\w+#.-]*+)[^\n`]*$")
_INLINE_BLOCK = re.compile(
    r"```(?P<language>(?:(?:python3?|py|cpp|cuda|c\+\+|c)\b)?)[ \t]*+(?P<code>.*?)```", re.DOTALL
)
_PYTHON = {"", "python", "py", "python3", "pytorch"}
_ENTRY = re.compile(r"^[ \t]*class[ \t]+ModelNew\b", re.MULTILINE)
_START = re.compile(r"^(import|from|class|def|@|#|\"\"\"|'''|[A-Za-z_]\w*[ \t]*=)")


@dataclass(frozen=True)
class Extraction:
    """`code` is None exactly when `reason` says why there is none."""

    code: str | None
    reason: str = ""


@dataclass(frozen=True)
class _Block:
    language: str
    code: str


def extract_code(text: str) -> Extraction:
    """Find the candidate's Python source in an answer. Never raises; see the module's rules."""
    answer = without_closed_reasoning(text)
    if "<think>" in answer:
        before = answer.partition("<think>")[0]
        if not before.strip():
            return Extraction(None, "the reasoning section never ends, so there is no answer")
        answer = before
    if not answer.strip():
        return Extraction(None, "the answer is empty")
    blocks = _fenced_blocks(answer)
    if blocks:
        entries = [block for block in blocks if _ENTRY.search(block.code)]
        chosen = (entries or [block for block in blocks if block.language.lower() in _PYTHON] or [None])[0]
        if chosen is None:
            languages = ", ".join(sorted({block.language for block in blocks}))
            return Extraction(None, f"no Python among {len(blocks)} fenced blocks ({languages})")
        if not chosen.code.strip():
            return Extraction(None, "the fenced block is empty")
        return Extraction(chosen.code)
    code = _bare_code(answer)
    if code is None:
        return Extraction(None, "no fenced block, and no valid Python that defines class ModelNew")
    return Extraction(code)


def without_closed_reasoning(text: str) -> str:
    """What is left without `<think>...</think>` sections, and behind the last `</think>` that closes none of them."""
    *closed, last = text.split("</think>")
    kept = ""
    for piece in closed:
        before, opened, _ = piece.partition("<think>")
        kept = kept + before if opened else ""
    return kept + last


def _fenced_blocks(text: str) -> list[_Block]:
    """Blocks between fence lines; a fence closes only with its own character, at least as long (CommonMark 4.5)."""
    blocks: list[_Block] = []
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        opening = _FENCE.match(lines[index].rstrip("\r"))
        index += 1
        if opening is None:
            continue
        fence = opening["fence"]
        body: list[str] = []
        closed = False
        while index < len(lines):
            line = lines[index]
            index += 1
            stripped = line.strip()
            if len(stripped) >= len(fence) and set(stripped) == {fence[0]}:
                closed = True
                break
            body.append(line)
        code = "\n".join(body)
        if not closed and fence in code:  # closed at the end of a line of code rather than on a line of its own
            code = code.partition(fence)[0]
        blocks.append(_Block(opening["language"], code + "\n" if body else ""))
    if not blocks:
        blocks = [_Block(match["language"], match["code"]) for match in _INLINE_BLOCK.finditer(text)]
    return blocks


def _error_line(code: str) -> float | None:
    """The line, from 1, up to which no Python begins so; infinite where that is not known. None: all of it is Python."""
    try:
        parse_python(code)
    except SyntaxError as error:
        return error.lineno or math.inf
    return None


def _bare_code(text: str) -> str | None:
    if not _ENTRY.search(text):
        return None
    lines = text.split("\n")
    entry = next(number for number, line in enumerate(lines) if _ENTRY.match(line))
    starts = [number for number in range(entry + 1) if _START.match(lines[number]) or number == entry]
    ends = [
        number for number in range(len(lines), entry, -1) if number == len(lines) or not lines[number][:1].isspace()
    ]
    # A stretch from the earliest start to the latest end is the longest; the number of tries is bounded.
    for start in starts[:60]:
        wrong = math.inf
        for end in ends[:60]:
            if end - start >= wrong:
                continue  # it has the line that was wrong in a longer one
            code = "\n".join(lines[start:end])
            wrong = _error_line(code)
            if wrong is None:
                return code.rstrip() + "\n"
    return None
