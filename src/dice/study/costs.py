"""Expected costs of jobs: GPU-hours, gigabytes on disk, seconds. No result depends on it. Memory: `dice.study.memory`."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

from dice.model.families import FAMILIES, Sampler
from dice.study.exams import examined
from dice.study.plan import Plan
from dice.study.units import RECORDED, RELEASED, REREAD, SERVED, SUPPLIED, asked

_KEPT_CHECKPOINTS = {"sft": 1, "rl": 2}
"""Stage -> checkpoints of a training run that are on the disk at one time."""
_PROBLEMS = {"mini": {1: 32, 2: 26, 3: 14}, "kernelbench": {1: 100, 2: 100, 3: 50}}
"""How a benchmark's version begins -> level -> problems."""
PROMPT_TOKENS = 900
"""Tokens of KernelBench's prompts, the median (docs/measurements/decoding.md)."""
_CANVAS_POSITION = 0.12
"""Cost of one position of a canvas, in steps with a cache: at 8B 26 of 225 microseconds (docs/measurements/decoding.md)."""


def answer_steps(spec: Mapping[str, Any], sampler: Sampler) -> float:
    """Decoding steps of the longest answer that the settings allow, counted in steps of a model with a cache.

    One step for each token; block diffusion takes `denoising_steps` for a block; a canvas computes all positions in each
    step. Answers that end early, dynamic decoding and windows take fewer.
    """
    new, own = spec.get("max_new_tokens", 4096), spec.get(sampler, {})
    if sampler in ("llada", "dream"):
        return (own.get("steps") or new) * (PROMPT_TOKENS + new) * _CANVAS_POSITION
    if sampler == "block_diffusion":
        return new * own.get("denoising_steps", 4) / own.get("block_size", 4)
    return new


def problems(plan: Plan, exam: str | None) -> int:
    """How many problems a benchmark has."""
    suite = plan.suite_of(exam)
    if suite.source in plan.study.datasets:
        return sum(plan.study.datasets[source].spec["n"] for source in suite.sources)
    levels = next((found for name, found in _PROBLEMS.items() if suite.version.startswith(name)), {})
    return sum(levels.get(level, 0) for level in suite.levels)


def is_local(plan: Plan, unit: str) -> bool:
    """Whether a GPU of this machine answers, by our engine or a local vLLM: not a record, a file or a vendor's server."""
    if unit.startswith((REREAD, RECORDED, SUPPLIED)):
        return False
    return not unit.startswith(SERVED) or "base_url" not in plan.server(unit.removeprefix(SERVED))


def answering_spec(plan: Plan, unit: str) -> dict[str, Any]:
    """Config of the stage by which a GPU of this machine answers."""
    seed = plan.study.seeds[0]
    return plan.ask_spec(unit, seed) if unit.startswith(SERVED) else plan.generate_spec(unit, seed)


def sampler_of(plan: Plan, unit: str) -> Sampler:
    """How the unit decodes."""
    family = plan.family(asked(unit)[0])
    return FAMILIES[family].sampler if family in FAMILIES else "autoregressive"


def _answers(plan: Plan, unit: str) -> int:
    """Answers to a benchmark for one seed."""
    name = unit.removeprefix(REREAD)
    samples = 1 if name.startswith((RECORDED, SUPPLIED)) else answering_spec(plan, name).get("samples", 1)
    return problems(plan, asked(name)[1]) * samples


def generate_hours(plan: Plan, unit: str) -> float:
    """GPU-hours of one seed's answers: parameters x answers x steps, in `costs.generate`."""
    if not is_local(plan, unit):
        return 0.0
    steps = _answers(plan, unit) * answer_steps(answering_spec(plan, unit), sampler_of(plan, unit))
    return plan.study.costs.generate * billions(unit) / 8 * steps / 1e6


@functools.cache
def job_costs(plan: Plan) -> dict[str, dict[str, tuple[float, float]]]:
    """Rule -> unit -> (GPU-hours, gigabytes on disk) that one of its jobs is expected to take.

    Gigabytes for each billion parameters: 2 for a model, and 12 (weights and AdamW's state in fp32) for each checkpoint that
    training keeps. Models that start from no checkpoint of the hub are small and count as nothing.
    """
    costs = plan.study.costs
    found: dict[str, dict[str, tuple[float, float]]] = {
        name: {} for name in ("fetch", "sft", "rl", "generate", "serve", "verify")
    }
    for unit in plan.models:
        rule, recipe = plan.model_rule(unit), None
        size = billions(unit)
        if not unit.startswith(RELEASED):
            recipe = plan.recipe(unit)
            size *= plan.base(plan.lineage(unit)[-1]).hub is not None
        if rule == "fetch":
            found["fetch"][unit] = (0.0, 2 * size)
        elif rule in _KEPT_CHECKPOINTS and recipe is not None:
            name = "rl_infilling" if recipe.task == "infilling" else recipe.stage
            hours = {"sft": costs.sft, "rl": costs.rl, "rl_infilling": costs.rl_infilling}[name]
            found[rule][unit] = (hours * billions(unit) / 8, (2 + 12 * _KEPT_CHECKPOINTS[rule]) * size)
    for unit in [*plan.units, *examined(plan)]:
        found["serve" if unit.startswith(SERVED) else "generate"][unit] = (generate_hours(plan, unit), 0.0)
        of_verifying = costs.verify * _answers(plan, unit) / 100 / plan.study.shards
        found["verify"][unit] = (of_verifying if plan.verify_gpus(unit) or not plan.job_gpus else 0.0, 0.0)
    return found


def billions(name: str) -> float:
    """Billions of parameters by the name; 0 where it says none."""
    size = re.search(r"([\d.]+)B", name)
    return float(size[1]) if size else 0.0


def licences(plan: Plan) -> dict[str, str]:
    """Unit whose checkpoint is fetched -> the licence."""
    return {unit: plan.registry.hub[plan.repository(unit)].licence for unit in plan.models_by("fetch")}


def hours(plan: Plan, units: list[str]) -> dict[str, float]:
    """Stage -> GPU-hours that are expected for the units and the models that they are trained from."""
    costs = job_costs(plan)
    runs = [run for unit in units if plan.is_trained(unit) for run in plan.runs(unit)]
    trained = {ancestor for run in runs for ancestor in plan.lineage(run)}
    total = {rule: sum(costs[rule][unit][0] for unit in trained & costs[rule].keys()) for rule in ("sft", "rl")}
    answered = [unit for unit in units for _ in plan.seeds(unit)]
    total["generate"] = sum((costs["generate"] | costs["serve"])[unit][0] for unit in answered)
    total["verify"] = sum(costs["verify"][unit][0] for unit in answered) * plan.study.shards
    return {name: round(value, 1) for name, value in total.items()}


def job_seconds(plan: Plan) -> dict[str, float]:
    """Rule -> seconds that one of its jobs is expected to take on average, for the rules whose cost is known."""
    costs, gpus = plan.study.costs, max(1, plan.study.gpus)
    known = {"synth": costs.synth, "sft": costs.sft / gpus, "rl": (costs.rl_infilling + costs.rl) / 2 / gpus}
    found = job_costs(plan)
    for rule in ("generate", "serve", "verify"):
        values = [value for value, _ in found[rule].values() if value]
        known[rule] = sum(values) / max(1, len(values))
    return {rule: 3600 * value for rule, value in known.items() if value}
