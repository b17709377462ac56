"""A benchmark problem in KernelBench's own format, so that its files work unchanged.

The code defines `Model`, `get_inputs()` and `get_init_inputs()`; it is executed only inside the verifier's grader.
"""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict


class Problem(BaseModel):
    """One problem. `id` is logical and stable: level, number and name, never the order in a folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: str
    """`level1/19_ReLU`."""
    level: int
    number: int
    name: str
    code: str
    version: str
    """Named version of the suite: `kernelbench-v0.1`, `mini-2-cpu`, ..."""


def level_and_number(problem_id: str) -> tuple[int, int] | None:
    """1 and 19 of `level1/19_ReLU` or `level1/19`; None for an id that has none."""
    found = re.fullmatch(r"level(\d+)/(\d+)(?:_.*)?", problem_id)
    return (int(found[1]), int(found[2])) if found else None
