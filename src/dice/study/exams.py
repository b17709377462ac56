"""What `dice exams` is told: the models that are made or decoded here, in every benchmark of the study."""

from __future__ import annotations

from typing import Any

from dice.study.plan import Plan
from dice.study.reports import measured
from dice.study.units import asking


def examined(plan: Plan) -> list[str]:
    """Units with the exam that they are asked, for each exam."""
    return [asking(unit, exam) for exam in plan.study.exams for unit in candidates(plan)]


def candidates(plan: Plan) -> list[str]:
    """Units of the tables whose checkpoints we decode, with prompts in our own markup."""
    models = set(plan.models)
    return [unit for unit in plan.units if unit in models and plan.prompts_of(unit) == plan.prompts]


def exams_spec(plan: Plan, number: int | None = None) -> dict[str, Any]:
    """Config of `dice exams`: for the models of table `number`; None: for all."""
    units = candidates(plan)
    if number is not None:
        units = [unit for unit in plan.table_units(number) if unit in units]
    rows = []
    for unit in units:
        for exam in (None, *plan.study.exams):
            facts = {"unit": unit, "measured": measured(plan, unit), "benchmark": plan.suite_of(exam).version}
            rows.append(facts | {"score": plan.score(asking(unit, exam))})
    return {"rows": rows, "scale": plan.study.scale, "out": exams_path(plan, number)}


def exams_path(plan: Plan, number: int | str | None = None) -> str:
    """The CSV of a table's models, or of all; `number` may be a wildcard."""
    return plan.path("exams.csv" if number is None else f"table{number}.exams.csv")


def exams_inputs(plan: Plan, number: int | None = None) -> list[str]:
    """The scores that it reads."""
    return [row["score"] for row in exams_spec(plan, number)["rows"]]
