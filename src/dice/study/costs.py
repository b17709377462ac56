"""What jobs are expected to take: GPU-hours, gigabytes, seconds. No result depends on it."""

from __future__ import annotations

import re

from dice.study.exams import examined
from dice.study.plan import Plan
from dice.study.units import RELEASED, REREAD

_KEPT_STATES = {"sft": 1, "rl": 2}
"""Stage -> states of a training run that are on the disk at one time."""


def job_costs(plan: Plan) -> dict[str, dict[str, tuple[float, float]]]:
    """Rule -> unit -> (GPU-hours, gigabytes on disk) that one of its jobs is expected to take.

    Gigabytes: 2 a billion parameters for a checkpoint of the hub's size, and 12 (weights and AdamW's state in fp32) for
    each state that training keeps. Models that are made here are small and count as nothing.
    """
    costs = plan.study.costs
    found: dict[str, dict[str, tuple[float, float]]] = {
        name: {} for name in ("fetch", "sft", "rl", "generate", "verify")
    }
    for unit in plan.models:
        rule, recipe = plan.model_rule(unit), None
        billions = _billions(unit)
        if not unit.startswith(RELEASED):
            recipe = plan.recipe(unit)
            billions *= plan.base(plan.lineage(unit)[-1]).hub is not None
        if rule == "fetch":
            found["fetch"][unit] = (0.0, 2 * billions)
        elif rule in _KEPT_STATES and recipe is not None:
            name = "rl_infilling" if recipe.task == "infilling" else recipe.stage
            hours = {"sft": costs.sft, "rl": costs.rl, "rl_infilling": costs.rl_infilling}[name]
            share = float(plan.size_and_recipe(unit)[0].removesuffix("B")) / 8.0
            found[rule][unit] = (hours * share, (2 + 12 * _KEPT_STATES[rule]) * billions)
    for unit in [*plan.units, *examined(plan)]:
        found["generate"][unit] = (0.0 if unit.startswith(REREAD) else costs.generate, 0.0)
        found["verify"][unit] = (costs.verify / plan.study.shards, 0.0)
    return found | {"serve": found["generate"]}


def _billions(name: str) -> float:
    """Billions of parameters that a name tells; 0 where it does not."""
    size = re.search(r"([\d.]+)B", name)
    return float(size[1]) if size else 0.0


def hub_facts(plan: Plan) -> dict[str, tuple[float, str]]:
    """Released model -> (GiB of a GPU that its weights alone take in 16 bits, licence)."""
    return {
        name: (2e9 * _billions(name) / 2**30, plan.registry.hub[entry.hub].licence)
        for name, entry in plan.registry.models.items()
        if entry.hub is not None and _billions(name)
    }


def hours(plan: Plan, units: list[str]) -> dict[str, float]:
    """Stage -> GPU-hours that are expected for the units and what they are trained from."""
    costs = job_costs(plan)
    trained = {ancestor for unit in units if plan.is_trained(unit) for ancestor in plan.lineage(unit)}
    total = {rule: sum(costs[rule][unit][0] for unit in trained & costs[rule].keys()) for rule in ("sft", "rl")}
    answered = [unit for unit in units for _ in plan.seeds(unit)]
    total["generate"] = sum(costs["generate"][unit][0] for unit in answered)
    total["verify"] = sum(costs["verify"][unit][0] for unit in answered) * plan.study.shards
    return {name: round(value, 1) for name, value in total.items()}


def job_seconds(plan: Plan) -> dict[str, float]:
    """Rule -> seconds that one of its jobs is expected to take, for the rules whose cost is known."""
    costs, gpus = plan.study.costs, max(1, plan.study.gpus)
    known = {
        "synth": costs.synth,
        "sft": costs.sft / gpus,
        "rl": (costs.rl_infilling + costs.rl) / 2 / gpus,
        "generate": costs.generate,
        "verify": costs.verify / plan.study.shards,
    }
    return {rule: 3600 * value for rule, value in known.items() if value}
