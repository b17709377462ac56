"""What `dice table`, `dice figure`, `dice check` and `dice explorer` are told."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dice.manifest import MODEL_MANIFEST
from dice.study.plan import Plan
from dice.study.registry import Table, TableRow
from dice.study.units import RECORDED, RELEASED, REREAD, SERVED, SUPPLIED

Spec = dict[str, Any]
_STAGE_OF_COLUMN = {"dataset_size": "sft", "sft_samples": "sft", "rl_samples": "rl"}
_PIPELINE = {"CuKe pairs": "cuke", "infilling problems": "rl_infilling", "end-to-end problems": "rl_end_to_end"}
"""Box of Figure 3 -> the data set whose rows it counts."""


def histogram(plan: Plan, number: int) -> str | None:
    """For a histogram: the report of curation, None where nothing is timed at this scale."""
    name = plan.registry.tables[number].dataset
    timed = name in plan.datasets("curate") and plan.study.backend == "cuda"
    return plan.path("data", name, "report.json") if name and timed else None


def sizes(plan: Plan, unit: str, columns: Sequence[str]) -> dict[str, list[str]]:
    """Column of a table -> files of the data that the unit was trained on, for a unit that this run trains."""
    if not (plan.is_trained(unit) and plan.makes("checkpoints")):
        return {}
    recipes = [recipe for ancestor in plan.lineage(unit) if (recipe := plan.recipe(ancestor))]
    return {
        column: [plan.dataset(recipe.dataset) for recipe in recipes if recipe.stage == _STAGE_OF_COLUMN[column]]
        for column in columns
        if column in _STAGE_OF_COLUMN
    }


def settings(plan: Plan, unit: str) -> dict[str, int]:
    """Column of a table -> the setting with which the unit's answers are made; nothing for a user's file."""
    unit = unit.removeprefix(REREAD)
    if unit.startswith((SUPPLIED, RECORDED)):
        return {}
    spec_of = plan.ask_spec if unit.startswith(SERVED) else plan.generate_spec
    return {"max_new_tokens": spec_of(unit, plan.study.seeds[0])["max_new_tokens"]}


def measured(plan: Plan, unit: str) -> dict[str, str]:
    """What the unit is, for the rows that it is measured in: its model and its parameters."""
    found = _published(plan, unit)
    return found if plan.study.stand_ins is None else {"model": f"stand-in {found['model']}"}


def _published(plan: Plan, unit: str) -> dict[str, str]:
    size = re.search(r"([\d.]+B)(-|$)", unit)
    params = size[1] if size else ""
    if unit.startswith((SUPPLIED, RECORDED)):
        return {"model": f"{unit.partition('-')[0]} answers"}
    if unit.startswith((RELEASED, SERVED)):
        name = unit.partition("-")[2]
        return {"model": plan.registry.models[name].hub or name, "params": params}
    if (small := plan.size(unit).parameters) is None:
        return {"model": unit, "params": params}
    return {"model": f"stand-in {unit}", "params": small}


# -- tables ----------------------------------------------------------------------------------------------------------


def table_spec(plan: Plan, number: int) -> Spec:
    """Config of `dice table`."""
    table = plan.registry.tables[number]
    stages = [
        {
            "stage": stage,
            "manifest": f"{plan.model(unit)}/{MODEL_MANIFEST}" if unit else None,
            "history": f"{plan.model(unit)}/history.jsonl" if unit else None,
            "measured": measured(plan, unit) if unit else {},
        }
        for stage, unit in plan.cost_units(number).items()
    ]
    return {
        "number": number,
        "title": table.title,
        "kind": table.kind,
        "reported": f"experiments/reported/table{number}.csv",
        "rows": [spec for row in table.rows for spec in _row_specs(plan, table, row)],
        "numbers": list(table.numbers),
        "stages": stages,
        "speedups": histogram(plan, number),
        "reason": f"the scale {plan.study.scale} times no training pairs" if table.kind == "histogram" else "",
        "scale": plan.study.scale,
        "benchmark": plan.measured_on,
        "out": plan.path(f"table{number}.csv"),
    }


def _row_specs(plan: Plan, table: Table, row: TableRow) -> list[Spec]:
    """A row of a table, and behind it the same without the robust check or as the authors' script reads it."""
    found = plan.evidence(row)
    given: Spec = {"row": row.row, "score": None, "reason": found.reason, "robust": row.robust}
    given |= {"withdrawn": found.withdrawn, "added": row.added, "measured": {}}
    if found.unit is None:
        return [] if row.added else [given]
    given |= {"score": plan.score(found.unit), "measured": measured(plan, found.unit)}
    if table.numbers:
        given |= {"sizes": sizes(plan, found.unit, table.numbers), "settings": settings(plan, found.unit)}
    specs = [given]
    if row.unchecked:
        specs.append(given | {"row": f"{row.row}-unchecked", "robust": False, "paper": row.row})
    if row.released:
        score = plan.score(f"{REREAD}{found.unit}")
        specs.append(given | {"row": f"{row.row}-released", "score": score, "paper": row.row})
    return specs


def table_inputs(plan: Plan, number: int) -> list[str]:
    """What a table is made from: scores of its rows, counted data and models, the report of curation."""
    models = [plan.model(unit) for unit in plan.cost_units(number).values() if unit]
    report = [path for path in [histogram(plan, number)] if path]
    columns, units = plan.registry.tables[number].numbers, plan.table_units(number)
    data = [path for unit in units for files in sizes(plan, unit, columns).values() for path in files]
    return [*map(plan.score, units), *dict.fromkeys(data), *models, *report]


# -- figures ---------------------------------------------------------------------------------------------------------


def figure_spec(plan: Plan, number: int) -> Spec:
    """Config of `dice figure`; units that this scale does not have are left out."""
    figure, datasets = plan.registry.figures[number], plan.study.datasets
    found = (plan.evidence(TableRow(row=unit, unit=unit)).unit for unit in figure.units)
    units = [unit for unit in found if unit is not None]
    spec: Spec = {
        "number": number,
        "title": figure.title,
        "kind": figure.kind,
        "scale": plan.study.scale,
        "tables": [plan.path(f"table{table}.csv") for table in figure.tables],
        "out": plan.path(f"figure{number}.csv"),
    }
    if figure.kind == "overview":
        spec["histories"] = {unit: f"{plan.model(unit)}/history.jsonl" for unit in units if plan.is_trained(unit)}
    elif figure.kind == "failures":
        spec["scores"] = {unit: plan.score(unit) for unit in units}
    elif figure.kind == "decoding_order" and units:
        spec["generations"] = plan.generations(units[0], plan.study.seeds[0])
    elif figure.kind == "components" and "rl_infilling" in datasets:
        spec["pairs"] = plan.dataset("rl_infilling")
    elif figure.kind == "pipeline":
        spec["files"] = {box: plan.dataset(name) for box, name in _PIPELINE.items() if name in datasets}
        spec["files"]["benchmark problems"] = plan.problems
    return spec


def figure_inputs(plan: Plan, number: int) -> list[str]:
    """Files that a figure is drawn from; a history stands for the model's folder that holds it."""
    spec = figure_spec(plan, number)
    inputs = [*spec["tables"], *spec.get("scores", {}).values(), *spec.get("files", {}).values()]
    inputs += [str(Path(path).parent) for path in spec.get("histories", {}).values()]
    return inputs + [spec[name] for name in ("generations", "pairs") if name in spec]


# -- the whole study -------------------------------------------------------------------------------------------------


def check_spec(plan: Plan) -> Spec:
    """Config of `dice check`."""
    pairs = []
    for number, table in plan.registry.tables.items():
        units = {row.row: plan.evidence(row).unit for row in table.rows}
        for row in table.rows:
            against = row.against or table.against
            one, other = units[row.row], units.get(against or "")
            if against is not None and one and other and one != other:
                scores = {"score": plan.score(one), "score_against": plan.score(other)}
                pairs.append({"table": f"table{number}", "row": row.row, "against": against, **scores})
    return {"tables": plan.tables, "pairs": pairs, "out": plan.path("check.csv")}


def check_inputs(plan: Plan) -> list[str]:
    """Tables, and the scores that are compared."""
    pairs = check_spec(plan)["pairs"]
    return [*plan.tables, *dict.fromkeys(pair[name] for pair in pairs for name in ("score", "score_against"))]


def explorer_spec(plan: Plan) -> Spec:
    """Config of `dice explorer`."""
    units = {unit: plan.seeds(unit) for unit in plan.units}
    given = {"tables": plan.tables, "units": units, "problems": plan.problems}
    return {**given, "results": plan.study.results, "out": plan.path("explorer")}
