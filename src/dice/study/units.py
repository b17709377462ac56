"""Which models a scale has: a *unit* is one model to evaluate, and every row of a table rests on one or on none.

`8B-dice` is the recipe `dice` at the size `8B`, `8B-base` and `8B-qwen3` are the models that training starts from,
`hub-Qwen3-8B` is a released checkpoint, `served-Gemma-2-It-2B` a model behind a server, `recorded-Gemini-3-Pro` a user's
file of recorded answers, `supplied-CUDA-L1` one of candidates, `reread-hub-Qwen3-8B` the answers of `hub-Qwen3-8B` read once
more. Everything here is a pure function of the configuration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from dice.errors import DiceError
from dice.model.families import FAMILIES
from dice.study.config import Base, Recipe, Settings, Size, StartFrom, Study, merged
from dice.study.registry import Family, Registry, TableRow

DECODED: tuple[Family, ...] = tuple(FAMILIES)
"""Families whose checkpoints `dice generate` loads and decodes."""
ModelRule = Literal["base", "fetch", "sft", "rl", "archived_model"]
"""Rules that make a checkpoint."""
SUPPLIED = "supplied-"
"""Before the row that a user's file of candidates stands for."""
RECORDED = "recorded-"
"""Before the row whose answers were recorded."""
SERVED = "served-"
"""Before the entry of models.yaml that answers through a server."""
REREAD = "reread-"
"""Before the unit whose answers are read as the authors' script does."""
RELEASED = "hub-"
"""Before the entry of models.yaml whose checkpoint is on the hub."""

AT = "@"
"""Between a unit and the exam that it is asked: `8B-dice@composites`."""

RUN = ".run"
"""Between a trained unit and the seed of a training run: `8B-dice.run1`; the first seed's run is the unit itself."""

_UNIT = re.compile(rf"(?P<size>[\d.]+B)-(?P<recipe>\w+)({re.escape(RUN)}(?P<seed>\d+))?")


def asking(unit: str, exam: str | None) -> str:
    """(`8B-dice`, `composites`) -> `8B-dice@composites`; the unit itself for the study's suite, None."""
    return unit if exam is None else f"{unit}{AT}{exam}"


def asked(name: str) -> tuple[str, str | None]:
    """`8B-dice@composites` -> (`8B-dice`, `composites`); without an exam it is the study's suite, None."""
    unit, at, exam = name.partition(AT)
    return unit, exam if at else None


@dataclass(frozen=True)
class Evidence:
    """What a row rests on: a unit, or the reason why there is none."""

    unit: str | None
    reason: str
    withdrawn: bool = False
    """There is none, and nobody can make one any more."""


class Units:
    """The units of one scale."""

    def __init__(self, study: Study, registry: Registry) -> None:
        """Raises DiceError where something is given for a row that no table has, a server for a model without one, or our own
        engine for a model that it does not decode."""
        self.study, self.registry = study, registry
        rows = {row.model for table in registry.tables.values() for row in table.rows if row.model}
        given: dict[str, Mapping[str, object]] = {
            "supplied": study.supplied, "recorded": study.recorded, "servers": study.servers,
            "own_engine": study.own_engine,
        }  # fmt: skip
        for name, files in given.items():
            if unknown := sorted(set(files) - rows):
                raise DiceError(f"{name}: no table has a row of '{unknown[0]}'; rows are {', '.join(sorted(rows))}.")
        for model in study.servers:
            if not (registry.models[model].hub or self.server(model).get("base_url")):
                raise DiceError(f"servers.{model}: there is no checkpoint of it on the hub, so it needs a base_url.")
        for model in study.own_engine:
            if model in study.servers:
                raise DiceError(f"own_engine.{model}: `servers` names it, too; a row has one of them.")
            if not (registry.models[model].hub and registry.models[model].family in DECODED):
                raise DiceError(f"own_engine.{model}: our engine decodes checkpoints of {', '.join(DECODED)}.")

    def size_and_recipe(self, unit: str) -> tuple[str, str]:
        """`8B-dice` -> (`8B`, `dice`). Raises DiceError for a unit that this scale does not train."""
        match = _UNIT.fullmatch(unit)
        if match is None or match["size"] not in self.study.sizes:
            raise DiceError(f"'{unit}' is no model that the scale {self.study.scale} trains.")
        return match["size"], match["recipe"]

    def is_unit(self, name: str) -> bool:
        """Whether `name` is a size with a recipe or a base, whatever this scale trains."""
        match = _UNIT.fullmatch(name)
        return match is not None and match["recipe"] in ("base", "qwen3", *self.study.recipes)

    def is_trained(self, unit: str) -> bool:
        """Whether this scale trains (or loads as a base) the unit."""
        match = _UNIT.fullmatch(unit)
        if match is None or match["size"] not in self.study.sizes:
            return False
        *recipes, base = self._chain(match["recipe"])
        if any(
            name in self.study.left_out or self.study.recipes[name].dataset not in self.study.datasets
            for name in recipes
        ):
            return False
        return base == "base" or (base == "qwen3" and self.size(unit).qwen3 is not None)

    def _chain(self, recipe: str) -> list[str]:
        """The recipe and those that it starts from, behind them the name of the base."""
        chain = [recipe]
        while chain[-1] in self.study.recipes:
            chain.append(self.study.recipes[chain[-1]].parent)
        return chain

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
        """The unit that a trained unit starts from: of its own run, but there is one base for all."""
        size, name = self.size_and_recipe(unit)
        parent = f"{size}-{self.study.recipes[name].parent}"
        return self.run(parent, self.run_seed(unit))

    def run_seed(self, unit: str) -> int:
        """Seed of the training run that a unit is."""
        _, found, seed = unit.partition(RUN)
        return int(seed) if found else self.study.seeds[0]

    def run(self, unit: str, seed: int) -> str:
        """The training run whose model gives the unit's answers of a seed; the unit itself where one run gives them all."""
        trained_again = self.study.train_each_seed and self.is_trained(unit) and self.recipe(unit) is not None
        return f"{unit}{RUN}{seed}" if trained_again and seed != self.study.seeds[0] else unit

    def runs(self, unit: str) -> list[str]:
        """Every training run of the unit, that of the first seed first."""
        return list(dict.fromkeys(self.run(unit, seed) for seed in self.study.seeds))

    def lineage(self, unit: str) -> list[str]:
        """The unit and its ancestors, the base last."""
        chain = [unit]
        while self.recipe(chain[-1]) is not None:
            chain.append(self.parent(chain[-1]))
        return chain

    def family(self, unit: str) -> Family:
        """How the unit decodes."""
        unit = unit.removeprefix(REREAD)
        if unit.startswith((RELEASED, SERVED)):
            return self.registry.models[unit.removeprefix(RELEASED).removeprefix(SERVED)].family
        return "qwen3" if self.lineage(unit)[-1].endswith("-qwen3") else "sdar"

    def evidence(self, row: TableRow) -> Evidence:
        """What the row is measured with at this scale: a file of the user's, what is trained here, what was released.

        A unit that is not trained here is the released checkpoint that it stands for, where there is one (models.yaml).
        """
        models = self.registry.models
        model = row.model or next(
            (name for name, entry in models.items() if row.unit and entry.trained == row.unit), ""
        )
        entry = models.get(model)
        unit = row.unit or (entry.trained if entry else None)
        if model in self.study.supplied:
            return Evidence(f"{SUPPLIED}{model}", "")
        if model in self.study.recorded:
            return Evidence(f"{RECORDED}{model}", "")
        if model in self.study.servers:
            return Evidence(f"{SERVED}{model}", "")
        if unit is not None and self.is_trained(unit):
            return Evidence(unit, "")
        if entry is not None and self.study.hub_rows and entry.hub is not None:
            if (terms := self.registry.hub[entry.hub].terms) and entry.hub not in self.study.accept:
                return Evidence(None, f"{entry.hub} says {terms}; confirm it (accept)")
            if entry.server is not None and model not in self.study.own_engine:
                served = Evidence(f"{SERVED}{model}", "")
                return served if self.study.local_rows else Evidence(None, "it takes a local vLLM (local_rows)")
            if entry.family in DECODED:
                return Evidence(f"{RELEASED}{model}", "")
            return Evidence(None, f"there is no decoder for the family {entry.family}")
        if entry is not None and entry.family == "solutions":
            return Evidence(None, "its published solutions were not supplied")
        if entry is not None and entry.family == "api":
            gone = f"{entry.withdrawn}; " if entry.withdrawn else ""
            return Evidence(None, f"{gone}no recorded answers were supplied", withdrawn=entry.withdrawn is not None)
        return Evidence(None, self._left_out(unit or "") or f"not part of the scale {self.study.scale}")

    def _left_out(self, unit: str) -> str | None:
        """Why the unit's size, its recipe or one that this starts from is left out."""
        size, _, recipe = unit.partition("-")
        names = [size, *self._chain(recipe)[:-1]]
        return next((self.study.left_out[name] for name in names if name in self.study.left_out), None)

    def table_units(self, number: int) -> list[str]:
        """Units that a table's rows rest on, each once."""
        rows = self.registry.tables[number].rows
        found = [(row, unit) for row in rows if (unit := self.evidence(row).unit) is not None]
        rereads = [f"{REREAD}{unit}" for row, unit in found if row.released]
        return list(dict.fromkeys([*(unit for _, unit in found), *rereads]))

    @property
    def rereads(self) -> dict[str, Literal["first_block", "own_prompt"]]:
        """Unit -> how the authors' script reads the answers of the unit behind the prefix."""
        found: dict[str, Literal["first_block", "own_prompt"]] = {}
        for row in (row for table in self.registry.tables.values() for row in table.rows):
            if row.released is not None and (unit := self.evidence(row).unit) is not None:
                found[f"{REREAD}{unit}"] = row.released
        return found

    def makes(self, evidence: StartFrom) -> bool:
        """Whether this run makes its own `checkpoints`, `generations` or `verdicts`; otherwise the archive has them."""
        order: tuple[StartFrom, ...] = ("checkpoints", "generations", "verdicts")
        return self.study.start_from not in order[order.index(evidence) :]

    def model_rule(self, unit: str) -> ModelRule:
        """The rule that makes the unit's checkpoint."""
        if unit.startswith(RELEASED):
            return "fetch"
        if not self.makes("checkpoints"):
            return "archived_model"
        if recipe := self.recipe(unit):
            return recipe.stage
        base = self.base(unit)
        if self.study.from_scratch or not (base.checkpoint or base.hub):
            return "sft"
        return "base" if base.checkpoint else "fetch"

    @property
    def models(self) -> list[str]:
        """Every unit with a checkpoint: those of the scale's sizes, each training run by itself, and the released ones."""
        recipes = ("base", "qwen3", *self.study.recipes)
        trained = filter(self.is_trained, (f"{size}-{recipe}" for size in self.study.sizes for recipe in recipes))
        runs = (run for unit in trained for run in self.runs(unit))
        released = (f"{RELEASED}{name}" for name, entry in self.registry.models.items() if entry.hub)
        return [*runs, *released]

    def models_by(self, rule: ModelRule) -> list[str]:
        """Units whose checkpoint is made by the rule."""
        return [unit for unit in self.models if self.model_rule(unit) == rule]

    def server(self, model: str) -> Settings:
        """Settings of the server that answers for an entry of models.yaml, without those of a local one."""
        return merged({"model": model}, self.registry.models[model].server or {}, self.study.servers.get(model, {}))

    def served(self, *, local: bool) -> list[str]:
        """Units that can answer through a local vLLM, or through a server that is there already."""
        named = [name for name, entry in self.registry.models.items() if entry.server is not None or entry.hub]
        named = list(dict.fromkeys([*named, *self.study.servers]))
        return [f"{SERVED}{name}" for name in named if ("base_url" not in self.server(name)) == local]

    @property
    def answering(self) -> list[str]:
        """Every unit whose answers are made here, by our own engine or by a server."""
        return [*self.models, *self.served(local=True), *self.served(local=False)]

    def cost_units(self, number: int) -> dict[str, str | None]:
        """For a table of costs: the paper's stage -> unit, None where this scale does not train it."""
        stages = self.registry.tables[number].stages
        return {stage: unit if self.is_trained(unit) else None for stage, unit in stages.items()}

    @property
    def units(self) -> list[str]:
        """Every unit that some suite table rests on."""
        units = [unit for number in self.registry.tables for unit in self.table_units(number)]
        return list(dict.fromkeys(units))
