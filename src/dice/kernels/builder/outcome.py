"""How a build on one route ends: an object, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dice.kernels.records.extension import BuildStatus, LaunchCount
from dice.kernels.source.lexer import Refuted


@dataclass(frozen=True)
class Built:
    """A shared object in a work folder. facts: for the loader (`BuildCache`)."""

    path: Path
    route: str
    launches: LaunchCount
    facts: dict[str, Any] = field(default_factory=dict)
    fallbacks: tuple[str, ...] = ()


class Declined(Exception):
    """This route does not take the source; `reason` is for BuildResult.fallbacks."""

    def __init__(self, reason: str, fallbacks: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.fallbacks = fallbacks


class FinalRefusal(Exception):
    """Stock fails on this source too. `message`: the compiler's diagnostics; `rule`: why that is certain."""

    def __init__(self, message: str, rule: str) -> None:
        super().__init__(rule)
        self.message = message
        self.rule = rule


def broken_rule(refuted: Refuted, source: str, first_line: int = 1) -> FinalRefusal:
    """A broken rule of CUDA as a compiler would word it. `source`: the file's name; `first_line`: of the text in it."""
    line = refuted.line + first_line - 1
    return FinalRefusal(f"{source}({line}): error: {refuted.reason}", "a rule of CUDA")


class OutOfLimits(Exception):
    """A compiler ran out of time or memory."""

    def __init__(self, status: BuildStatus, message: str) -> None:
        super().__init__(message)
        self.status: BuildStatus = status
        self.message = message
