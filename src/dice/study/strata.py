"""The configs of `dice strata` and `dice leaks`: the data that a table's rows were trained on, and the exam."""

from __future__ import annotations

from typing import Any

from dice.data.leakage.report import SUFFIX
from dice.study.plan import Plan
from dice.study.reports import table_spec


def leaks_spec(plan: Plan, dataset: str) -> dict[str, Any]:
    """Config of `dice leaks` for a file that the user supplies."""
    found = plan.study.datasets[dataset]
    given = {
        "data": plan.file(found.path or ""),
        "out": plan.pairs(dataset),
        "benchmarks": [plan.problems, *plan.kept_out(dataset)],
    }
    return {**given, **found.spec}


def trained_on(plan: Plan, unit: str) -> list[str]:
    """Data sets that the unit and its ancestors were trained on in this study; an embedded base brings none."""
    if not (plan.is_trained(unit) and plan.makes("checkpoints")):
        return []
    recipes = [recipe for ancestor in plan.lineage(unit) if (recipe := plan.recipe(ancestor))]
    names = [recipe.dataset for recipe in recipes]
    base = plan.lineage(unit)[-1]
    if plan.model_rule(base) == "sft":
        names += plan.base(base).datasets
    return names


def strata_spec(plan: Plan, number: int) -> dict[str, Any]:
    """Config of `dice strata` for a table of scores."""
    units = plan.table_units(number)
    sets = dict.fromkeys(name for unit in units for name in trained_on(plan, unit))
    rows = [
        {"row": row["row"], "score": row["score"], "robust": row["robust"]}
        for row in table_spec(plan, number)["rows"]
        if row["score"]
    ]
    return {
        "problems": plan.problems,
        "leaks": [plan.pairs(name) + SUFFIX for name in sets],
        "rows": rows,
        "out": strata_path(plan, number),
    }


def strata_path(plan: Plan, number: int | str) -> str:
    """The CSV of a table's strata; `number` may be a wildcard."""
    return plan.path(f"table{number}.strata.csv")


def strata_inputs(plan: Plan, number: int) -> list[str]:
    """The files that it reads."""
    spec = strata_spec(plan, number)
    return [spec["problems"], *spec["leaks"], *(row["score"] for row in spec["rows"])]


def strata_tables(plan: Plan) -> list[str]:
    """The CSV of each table whose rows were measured by models that this study trains."""
    numbers = [number for number, table in plan.registry.tables.items() if table.kind == "suite"]
    return [strata_path(plan, number) for number in numbers if strata_spec(plan, number)["leaks"]]
