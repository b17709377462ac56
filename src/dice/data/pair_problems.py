"""The programs of a file of pairs as the problems of a benchmark: generated composites, or programs that others published."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from dice.data.difficulty import difficulties
from dice.data.pair import from_published, read_pairs
from dice.jsonl import BadRow, RowError
from dice.kernels.api import Problem, named_problem


def problems_of_pairs(
    path: str | Path, *, version: str, levels: Sequence[int]
) -> Iterator[tuple[Path, Problem | BadRow]]:
    """The problems of `levels`, numbered by their rows from 1; a pair without a level is labelled (dice.data.difficulty).

    Raises DiceError for a file that is not of pairs, or of the authors' programs.
    """
    pairs, _ = read_pairs(path, require_cuda=False, convert=from_published("unknown"))
    for number, (pair, label) in enumerate(zip(pairs, difficulties(pairs), strict=True), 1):
        level = pair.level or label.level
        if level is None or level not in levels:
            continue
        name = re.sub(r"\W+", "_", pair.id)
        try:
            yield Path(path), named_problem(f"{number}_{name}", pair.pytorch_code, level, version)
        except RowError as error:
            yield Path(path), BadRow(path=str(path), line=number, id=pair.id, reason=str(error))
