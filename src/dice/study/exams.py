"""What `dice exams` is told: every model that is made or decoded here, in every benchmark of the study."""

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


def exams_spec(plan: Plan) -> dict[str, Any]:
    """Config of `dice exams`."""
    rows = []
    for unit in candidates(plan):
        for exam in (None, *plan.study.exams):
            facts = {"unit": unit, "measured": measured(plan, unit), "benchmark": plan.suite_of(exam).version}
            rows.append(facts | {"score": plan.score(asking(unit, exam))})
    return {"rows": rows, "scale": plan.study.scale, "out": plan.path("exams.csv")}


def exams_inputs(plan: Plan) -> list[str]:
    """The scores that it reads."""
    return [row["score"] for row in exams_spec(plan)["rows"]]
