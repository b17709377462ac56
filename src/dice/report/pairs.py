"""Two rows of a table compared on the problems that both have answered.

Two models that are asked the same problems mostly fail on the same hard ones, so the difference of their rates is more
certain than the rates: its interval takes the correlation over problems into account.
"""

from __future__ import annotations

import math
import statistics

from dice.config import stage_config
from dice.errors import DiceError
from dice.evaluation.score import METRICS, Rate, read_score
from dice.report.rows import Row, percent

COLUMNS = (
    *("table", "row", "against", "level", "metric", "problems", "measured", "measured_against"),
    *("difference", "low", "high", "better_on", "worse_on", "result"),
)


@stage_config
class PairEvidence:
    """Two measured rows of one table."""

    table: str
    """Name of the table."""
    row: str
    """Name of the row."""
    against: str
    """Name of the row that it is compared with."""
    score: str
    """score.json of the row."""
    score_against: str
    """score.json of the other one."""
    robust: bool = True
    """With the robust check, for both."""


def paired_interval(one: Rate, other: Rate) -> tuple[float, float]:
    """95 % interval of the difference of two shares, `one` minus `other`, in -1..1.

    From the two Wilson intervals and the correlation over problems (R. G. Newcombe 1998, Statistics in Medicine 17, 2635,
    method 8). Raises DiceError where they are not about the same problems.
    """
    if one.by_problem.keys() != other.by_problem.keys():
        raise DiceError("two rows that were asked different problems cannot be compared problem by problem.")
    mine = list(one.by_problem.values())
    theirs = [other.by_problem[name] for name in one.by_problem]
    constant = len(set(mine)) == 1 or len(set(theirs)) == 1
    together = 0.0 if constant else statistics.correlation(mine, theirs)

    def half(down: float, up: float) -> float:
        return math.sqrt(max(0.0, down * down - 2 * together * down * up + up * up))

    difference = one.value - other.value
    return (
        difference - half(one.value - one.low, other.high - other.value),
        difference + half(one.high - one.value, other.value - other.low),
    )


def compared(pair: PairEvidence) -> list[Row]:
    """A line for each level and metric that both rows have. Raises DiceError where they were asked different problems."""
    one, other = read_score(pair.score), read_score(pair.score_against)
    lines = []
    for level in (row for row in one.levels if row.robust == pair.robust):
        beside = other.level(level.level, pair.robust)
        for metric in METRICS:
            mine, theirs = level.metrics.get(metric), beside.metrics.get(metric) if beside else None
            if mine is None or theirs is None:
                continue
            try:
                low, high = paired_interval(mine, theirs)
            except DiceError as error:
                raise DiceError(f"{pair.table}, {pair.row} against {pair.against}: {error}") from error
            gains = [share - theirs.by_problem[name] for name, share in mine.by_problem.items()]
            result = "better" if low > 0 else "worse" if high < 0 else "cannot be told"
            cells = (
                *(pair.table, pair.row, pair.against, str(level.level), metric, str(len(gains))),
                *map(percent, (mine.value, theirs.value, mine.value - theirs.value, low, high)),
                *(str(sum(gain > 0 for gain in gains)), str(sum(gain < 0 for gain in gains)), result),
            )
            lines.append(dict(zip(COLUMNS, cells, strict=True)))
    return lines
