"""The config of `dice claims`: the rows of experiments/claims.yaml as a scale has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dice.errors import DiceError
from dice.study.exams import exam_units
from dice.study.plan import Plan
from dice.study.registry import Claim, TableRow
from dice.study.units import asking


def claims_spec(plan: Plan) -> dict[str, Any]:
    """Config of `dice claims`: each claim in each benchmark of the study, a cost once.

    Raises DiceError for a row that is neither a model nor a unit.
    """
    examined = exam_units(plan)
    claims = [
        {
            "name": name,
            "text": claim.text,
            "where": claim.where,
            "statistic": claim.statistic,
            "at_most": claim.at_most,
            "benchmark": plan.suite_of(exam).version if exam else plan.measured_on,
            "contrasts": [
                {
                    side: [_row(plan, claim, row.format(size=size), exam, examined) for row in rows]
                    for side, rows in (("more", contrast.more), ("less", contrast.less))
                }
                for size in claim.sizes
                for contrast in claim.contrasts
            ],
        }
        for exam in (None, *plan.study.exams)
        for name, claim in plan.registry.claims.items()
        if exam is None or claim.statistic != "cost"
    ]
    return {"claims": claims, "scale": plan.study.scale, "out": plan.path("claims.csv")}


def _row(plan: Plan, claim: Claim, name: str, exam: str | None, examined: list[str]) -> dict[str, Any]:
    """The evidence of a claim's row: the files of the unit that stands for it at this scale, as in the tables.

    exam: None for the suite. examined: units that take the exams.
    """
    row, _, reading = name.partition(":")
    model = row if row in plan.registry.models else None
    if reading not in ("", "unchecked") or (model is None and not plan.is_unit(row)):
        raise DiceError(f"claims.yaml: '{name}' is neither a model of models.yaml nor a unit.")
    found = plan.evidence(TableRow(row=row, model=model, unit=None if model else row))
    given: dict[str, Any] = {"name": name, "robust": not reading, "reason": found.reason}
    if found.unit is None:
        return given
    if claim.statistic == "cost":
        trained = plan.is_trained(found.unit)
        reason = "" if trained else f"not trained at the scale {plan.study.scale}"
        return given | {"history": f"{plan.model(found.unit)}/history.jsonl" if trained else None, "reason": reason}
    if exam is not None and found.unit not in examined:
        return given | {"reason": f"not asked the problems of {exam}"}
    unit = asking(found.unit, exam)
    if claim.statistic != "exec" and plan.verify_spec(unit, plan.study.seeds[0])["backend"] == "cpu":
        return given | {"reason": "the CPU back end measures no speed"}
    return given | {"verdicts": plan.verdicts(unit), "greedy": plan.is_same_each_seed(unit)}


def claims_inputs(plan: Plan) -> list[str]:
    """The verdicts of the rows of all claims, and the models whose histories are read."""
    contrasts = [contrast for claim in claims_spec(plan)["claims"] for contrast in claim["contrasts"]]
    rows = [row for contrast in contrasts for side in contrast.values() for row in side]
    verdicts = [path for row in rows for path in row.get("verdicts", ())]
    return [*dict.fromkeys(verdicts + [str(Path(row["history"]).parent) for row in rows if row.get("history")])]
