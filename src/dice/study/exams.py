"""The config of `dice exams`: the models that we decode, in every benchmark of the study."""

from __future__ import annotations

from typing import Any

from dice.study.plan import Plan
from dice.study.reports import measured
from dice.study.units import asking


def examined(plan: Plan) -> list[str]:
    """Each unit that takes the exams, in each of them."""
    return [asking(unit, exam) for exam in plan.study.exams for unit in exam_units(plan)]


def exam_units(plan: Plan) -> list[str]:
    """Units of the tables that take the exams: we decode their checkpoints, with prompts in our own markup."""
    models = set(plan.models)
    return [unit for unit in plan.units if unit in models and plan.prompts_of(unit) == plan.prompts]


def exams_spec(plan: Plan, number: int | None = None) -> dict[str, Any]:
    """Config of `dice exams` for the models of table `number`; None: for all."""
    units = exam_units(plan)
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
