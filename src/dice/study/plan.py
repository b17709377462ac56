"""From a scale and the tables to units of work: which model a row is measured with, and what each stage is told.

A *unit* is one model to evaluate: `8B-dice` (trained here), `8B-base`, `hub-Qwen3-8B` (a released checkpoint) or
`supplied-CUDA-L1` (candidates in a user's file). Everything here is a pure function of the configuration.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dice.config import spec_hash
from dice.errors import DiceError
from dice.manifest import MODEL_MANIFEST
from dice.study.config import Base, Recipe, Settings, Size, Study, merged
from dice.study.registry import Family, Registry, TableRow

DECODED: tuple[Family, ...] = ("sdar", "qwen3")
"""Families whose checkpoints `dice generate` loads and decodes."""


@dataclass(frozen=True)
class Evidence:
    """What a row rests on: a unit, or the reason why there is none."""

    unit: str | None
    reason: str


_UNIT = re.compile(r"(?P<size>[\d.]+B)-(?P<recipe>\w+)")


class Plan:
    """Paths and specs of every stage at one scale."""

    def __init__(self, study: Study, registry: Registry) -> None:
        self.study, self.registry = study, registry
        self.results = study.results
        rows = {row.model for table in registry.tables.values() for row in table.rows if row.model}
        if unknown := sorted(set(study.supplied) - rows):
            raise DiceError(f"supplied: no table has a row of '{unknown[0]}'; rows are {', '.join(sorted(rows))}.")

    # -- units -------------------------------------------------------------------------------------------------------

    def size_and_recipe(self, unit: str) -> tuple[str, str]:
        """`8B-dice` -> (`8B`, `dice`). Raises DiceError for a unit that this scale does not train."""
        match = _UNIT.fullmatch(unit)
        if match is None or match["size"] not in self.study.sizes:
            raise DiceError(f"'{unit}' is no model that the scale {self.study.scale} trains.")
        return match["size"], match["recipe"]

    def training_inputs(self, unit: str) -> list[str]:
        """Files and folders that training the unit reads: data, tokenizer, the parent's checkpoint."""
        spec = self.training_spec(unit)
        problems = [path for phase in spec.get("phases", ()) for path in phase["problems"]]
        return [*spec.get("pairs", ()), *problems, *(spec[name] for name in ("tokenizer", "model") if spec.get(name))]

    def is_trained(self, unit: str) -> bool:
        """Whether this scale trains (or loads as a base) the unit."""
        match = _UNIT.fullmatch(unit)
        if match is None or match["size"] not in self.study.sizes:
            return False
        recipe = match["recipe"]
        while recipe in self.study.recipes:
            if self.study.recipes[recipe].dataset not in self.study.datasets:
                return False
            recipe = self.study.recipes[recipe].parent
        return recipe == "base" or (recipe == "qwen3" and self.size(unit).qwen3 is not None)

    def size(self, unit: str) -> Size:
        """Configuration of the unit's size."""
        return self.study.sizes[self.size_and_recipe(unit)[0]]

    def recipe(self, unit: str) -> Recipe | None:
        """Recipe of a trained unit; None for a base model."""
        return self.study.recipes.get(self.size_and_recipe(unit)[1])

    def base(self, unit: str) -> Base:
        """Where a base unit comes from."""
        size, recipe = self.size(unit), self.size_and_recipe(unit)[1]
        base = size.sdar if recipe == "base" else size.qwen3
        if base is None or recipe not in ("base", "qwen3"):
            raise DiceError(f"'{unit}' is no base model of the scale {self.study.scale}.")
        return base

    def parent(self, unit: str) -> str:
        """The unit that a trained unit starts from."""
        size, name = self.size_and_recipe(unit)
        return f"{size}-{self.study.recipes[name].parent}"

    def lineage(self, unit: str) -> list[str]:
        """The unit and its ancestors, the base last."""
        chain = [unit]
        while self.recipe(chain[-1]) is not None:
            chain.append(self.parent(chain[-1]))
        return chain

    def family(self, unit: str) -> Family:
        """How the unit decodes."""
        if unit.startswith("hub-"):
            return self.registry.models[unit.removeprefix("hub-")].family
        return "qwen3" if self.lineage(unit)[-1].endswith("-qwen3") else "sdar"

    def evidence(self, row: TableRow) -> Evidence:
        """What the row is measured with at this scale."""
        unit, entry = row.unit, self.registry.models.get(row.model or "")
        if row.model in self.study.supplied:
            return Evidence(f"supplied-{row.model}", "")
        if unit is None and entry is not None:
            unit = entry.trained
        if unit is not None and self.is_trained(unit):
            return Evidence(unit, "")
        if entry is not None and self.study.hub_rows and entry.hub is not None:
            if entry.family in DECODED:
                return Evidence(f"hub-{row.model}", "")
            return Evidence(None, f"there is no decoder for the family {entry.family}")
        if entry is not None and entry.family == "solutions":
            return Evidence(None, "its published solutions were not supplied")
        if entry is not None and entry.family == "api":
            return Evidence(None, "no recorded responses were supplied")
        return Evidence(None, f"not part of the scale {self.study.scale}")

    def table_units(self, number: int) -> list[str]:
        """Units that a table's rows rest on, each once."""
        units = [self.evidence(row).unit for row in self.registry.tables[number].rows]
        return list(dict.fromkeys(unit for unit in units if unit is not None))

    # -- paths -------------------------------------------------------------------------------------------------------

    def path(self, *parts: str) -> str:
        """A path below the results."""
        return "/".join((self.results, *parts))

    def model(self, unit: str) -> str:
        """Folder of the unit's checkpoint."""
        return self.path("models", unit)

    def score(self, unit: str) -> str:
        """Score file of the unit."""
        return self.path("scores", f"{unit}.json")

    def dataset(self, name: str) -> str:
        """File of a data set, split for infilling where that is asked."""
        dataset = self.study.datasets[name]
        if dataset.infilling:
            return self.path("data", f"{name}.infilling.jsonl")
        return self.pairs(name)

    def pairs(self, name: str) -> str:
        """File of a data set's pairs."""
        dataset = self.study.datasets[name]
        if dataset.stage == "curate":
            return self.path("data", name, "pairs.jsonl")
        return self.path("data", f"{name}.jsonl")

    def curate_spec(self, name: str) -> dict[str, Any]:
        """Config of `dice curate` without `out`; nothing of the benchmark may be in a training set."""
        dataset = self.study.datasets[name]
        sources = [
            {
                "format": source.format,
                "path": self.pairs(source.path) if source.path in self.study.datasets else source.path,
                "rule": source.rule,
            }
            for source in dataset.sources
        ]
        given = {"backend": self.study.backend, "sources": sources, "benchmarks": [self.path("data", "problems.jsonl")]}
        return merged(given, dataset.spec)

    def state(self, unit: str) -> str:
        """Undeclared folder of a training run, keyed by what it does, so that a changed recipe never resumes an old run."""
        return self.path("state", f"{unit}-{spec_hash(self.training_spec(unit))[:12]}")

    # -- specs -------------------------------------------------------------------------------------------------------

    def training_spec(self, unit: str) -> dict[str, Any]:
        """Config of the stage that trains the unit, without `out`."""
        study, recipe = self.study, self.recipe(unit)
        if recipe is None:
            base = self.base(unit)
            if base.dataset is None:
                raise DiceError(f"{unit}: from scratch needs a data set in sizes.*.*.dataset.")
            objective = "autoregressive" if unit.endswith("-qwen3") else "block_diffusion"
            return merged(
                {"objective": objective, "prompt": study.prompt, "device": study.device},
                base.sft,
                {"pairs": [self.dataset(base.dataset)], "tokenizer": self.tokenizer(base.dataset)},
            )
        stage = {"sft": study.sft, "rl": study.rl}[recipe.stage]
        of_size = {"sft": self.size(unit).sft, "rl": self.size(unit).rl}[recipe.stage]
        given: dict[str, Any] = {"model": self.model(self.parent(unit)), "prompt": study.prompt, "device": study.device}
        if recipe.stage == "sft":
            objective = "autoregressive" if self.family(unit) == "qwen3" else "block_diffusion"
            given |= {"pairs": [self.dataset(recipe.dataset)], "objective": objective}
        else:
            given["reward"] = {"backend": study.backend}
            given["phases"] = [
                {
                    "task": recipe.task,
                    "problems": [self.dataset(recipe.dataset)],
                    "steps": study.rl_steps[recipe.task],
                    "order": recipe.order,
                }
            ]
        return merged(given, stage, of_size, recipe.spec)

    def fetch_spec(self, unit: str) -> dict[str, Any]:
        """Config of `dice fetch` without `out`: a released checkpoint, or a base that is on the hub, at its commit."""
        models = self.registry.models
        hub = models[unit.removeprefix("hub-")].hub if unit.startswith("hub-") else self.base(unit).hub
        return {"hub": hub, "revision": next((entry.revision for entry in models.values() if entry.hub == hub), None)}

    def fetch_state(self, unit: str) -> str:
        """Undeclared folder of a download, keyed by what is downloaded."""
        return self.path("state", f"{unit}-{spec_hash(self.fetch_spec(unit))[:12]}")

    def tokenizer(self, dataset: str) -> str:
        """Folder of the tokenizer that is trained on a data set."""
        return self.path("data", f"{dataset}.tokenizer")

    def generate_spec(self, unit: str, seed: int) -> dict[str, Any]:
        """Config of `dice generate` without `out`."""
        decoding: Settings = {}
        if unit.startswith("hub-"):
            decoding = self.registry.models[unit.removeprefix("hub-")].decoding
        else:
            named = [entry for entry in self.registry.models.values() if entry.trained == unit]
            decoding = named[0].decoding if named else self.decoding_of(self.family(unit))
        given = {"model": self.model(unit), "prompts": self.path("data", "prompts.jsonl"), "seed": seed}
        return merged(decoding, {"device": self.study.device}, self.study.generate, given)

    def decoding_of(self, family: Family) -> Settings:
        """Decoding of the paper's own models of a family (A.4.4), for variants without an entry."""
        return next((e.decoding for e in self.registry.models.values() if e.family == family and e.trained), {})

    def verify_spec(self, candidates: str) -> dict[str, Any]:
        """Config of `dice verify` without `out`."""
        given = {"candidates": candidates, "problems": self.path("data", "problems.jsonl")}
        return merged({"backend": self.study.backend}, self.study.verify, given)

    def cost_units(self, number: int) -> dict[str, str | None]:
        """For a table of costs: the paper's stage -> unit, None where this scale does not train it."""
        stages = self.registry.tables[number].stages
        return {stage: unit if self.is_trained(unit) else None for stage, unit in stages.items()}

    def histogram(self, number: int) -> str | None:
        """For a histogram: the report of curation, None where nothing is timed at this scale."""
        name = self.registry.tables[number].dataset
        if name is None or name not in self.study.datasets or self.study.datasets[name].stage != "curate":
            return None
        if self.study.backend == "cpu":
            return None
        return self.path("data", name, "report.json")

    def table_spec(self, number: int) -> dict[str, Any]:
        """Config of `dice table`."""
        table = self.registry.tables[number]
        rows = []
        for row in table.rows:
            found = self.evidence(row)
            score = self.score(found.unit) if found.unit else None
            rows.append({"row": row.row, "score": score, "reason": found.reason, "robust": row.robust})
            if row.unchecked and score is not None:
                rows.append({"row": f"{row.row}-unchecked", "score": score, "robust": False, "again": True})
        stages = [
            {"stage": stage, "manifest": f"{self.model(unit)}/{MODEL_MANIFEST}" if unit else None}
            for stage, unit in self.cost_units(number).items()
        ]
        return {
            "number": number,
            "title": table.title,
            "kind": table.kind,
            "reported": f"experiments/reported/table{number}.csv",
            "rows": rows,
            "stages": stages,
            "speedups": self.histogram(number),
            "reason": f"the scale {self.study.scale} times no training pairs" if table.kind == "histogram" else "",
            "scale": self.study.scale,
            "out": self.path(f"table{number}.csv"),
        }

    def figure_spec(self, number: int) -> dict[str, Any]:
        """Config of `dice figure`; units that this scale does not have are left out."""
        figure = self.registry.figures[number]
        units = [unit for unit in figure.units if self.is_trained(unit)]
        spec: dict[str, Any] = {
            "number": number,
            "title": figure.title,
            "kind": figure.kind,
            "scale": self.study.scale,
            "tables": [self.path(f"table{table}.csv") for table in figure.tables],
            "out": self.path(f"figure{number}.csv"),
        }
        if figure.kind == "overview":
            spec["histories"] = {unit: f"{self.model(unit)}/history.jsonl" for unit in units}
        elif figure.kind == "failures":
            spec["scores"] = {unit: self.score(unit) for unit in units}
        elif figure.kind == "decoding_order" and units:
            spec["generations"] = self.path("generations", units[0], f"seed{self.study.seeds[0]}.jsonl")
        elif figure.kind == "components" and "rl_infilling" in self.study.datasets:
            spec["pairs"] = self.dataset("rl_infilling")
        elif figure.kind == "pipeline":
            named = {"CuKe pairs": "cuke", "infilling problems": "rl_infilling", "end-to-end problems": "rl_end_to_end"}
            spec["files"] = {box: self.dataset(name) for box, name in named.items() if name in self.study.datasets}
            spec["files"]["benchmark problems"] = self.path("data", "problems.jsonl")
        return spec

    def figure_inputs(self, number: int) -> list[str]:
        """Files that a figure is drawn from; a history stands for the model's folder that holds it."""
        spec = self.figure_spec(number)
        inputs = [*spec["tables"], *spec.get("scores", {}).values(), *spec.get("files", {}).values()]
        inputs += [str(Path(path).parent) for path in spec.get("histories", {}).values()]
        return inputs + [spec[name] for name in ("generations", "pairs") if name in spec]

    @property
    def units(self) -> list[str]:
        """Every unit that some suite table rests on."""
        units = [unit for number in self.registry.tables for unit in self.table_units(number)]
        return list(dict.fromkeys(units))

    @property
    def job_gpus(self) -> int:
        """GPUs of a job that is not training."""
        return min(1, self.study.gpus)

    def hours(self, units: list[str]) -> dict[str, float]:
        """GPU-hours that are to be expected, by stage, for the units and what they are trained from."""
        costs, total = self.study.costs, dict.fromkeys(("sft", "rl_infilling", "rl", "generate", "verify"), 0.0)
        trained = {ancestor for unit in units if self.is_trained(unit) for ancestor in self.lineage(unit)}
        for unit in trained:
            recipe = self.recipe(unit)
            if recipe is None:
                continue
            size = float(self.size_and_recipe(unit)[0].removesuffix("B")) / 8.0
            name = "rl_infilling" if recipe.task == "infilling" else recipe.stage
            total[name] += {"sft": costs.sft, "rl": costs.rl, "rl_infilling": costs.rl_infilling}[name] * size
        n = len(units) * len(self.study.seeds)
        total["generate"] += costs.generate * n
        total["verify"] += costs.verify * n
        return {name: round(value, 1) for name, value in total.items()}


def canonical(spec: dict[str, Any]) -> str:
    """The JSON text that stands in a rule's params: one text for one meaning."""
    return json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
