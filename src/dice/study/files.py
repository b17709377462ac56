"""Where a study finds what others made: checkpoints of the hub, KernelBench, files that the user supplies.

A scale with `stand_ins` finds none of it: it makes files of the same form and layout (`dice standins`) below its results,
and every path and repository is looked up there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dice.study.units import DECODED, RECORDED, RELEASED, SERVED, SUPPLIED, Units

HUB, BENCHMARK = "hub", "KernelBench"
"""Folders of the stand-ins: `<owner>/<name>` with a checkpoint, and the benchmark's checkout."""


class Files(Units):
    """Paths of what is not made by a stage of the study."""

    def path(self, *parts: str) -> str:
        """A path below the results."""
        return "/".join((self.study.results, *parts))

    def stand_in(self, *parts: str) -> str:
        """A path among the stand-ins."""
        return self.path("stand-ins", *parts)

    def file(self, path: str) -> str:
        """A file of the user's, or what stands for it."""
        asked_of_the_hub = path.partition("@")[0] == "hub"
        return path if self.study.stand_ins is None or asked_of_the_hub else self.stand_in(path)

    @property
    def mirror(self) -> str | None:
        """Folder that stands for the hub."""
        return None if self.study.stand_ins is None else self.stand_in(HUB)

    @property
    def suite_source(self) -> str:
        """`mini`, `huggingface`, or the benchmark's folder."""
        return self.study.suite.source if self.study.stand_ins is None else self.stand_in(BENCHMARK)

    @property
    def supplied(self) -> dict[str, str]:
        """Unit -> the file of its candidates."""
        return {f"{SUPPLIED}{row}": self.file(path) for row, path in self.study.supplied.items()}

    @property
    def recorded(self) -> dict[str, str]:
        """Unit -> the file of its recorded answers."""
        return {f"{RECORDED}{row}": self.file(path) for row, path in self.study.recorded.items()}

    def repository(self, unit: str) -> str:
        """The repository of a checkpoint that is fetched."""
        if unit.startswith(RELEASED):
            found = self.registry.models[unit.removeprefix(RELEASED)].hub
        else:
            found = self.base(unit).hub
        assert found is not None  # `model_rule` says what is fetched
        return found

    def stand_ins_spec(self) -> dict[str, Any]:
        """Config of `dice standins`, for a scale that has it."""
        needed = {one for unit in self.units for one in (self.lineage(unit) if self.is_trained(unit) else [unit])}
        needed |= {unit.replace(SERVED, RELEASED, 1) for unit in self.served(local=True) if unit in needed}
        fetched = [unit for unit in self.models_by("fetch") if unit in needed]
        # what a server serves is its own affair: any checkpoint will do there
        families = {self.repository(unit): self.family(unit) for unit in fetched}
        families = {name: family if family in DECODED else "qwen3" for name, family in families.items()}
        models = {unit: self.registry.models[unit.removeprefix(RECORDED)].model_ids[0] for unit in self.recorded}
        of_format = {
            self.file(source.path): source.format
            for dataset in self.study.datasets.values()
            for source in dataset.sources
            if source.path not in self.study.datasets
        }
        of_format |= {
            self.file(dataset.path): "infilling" if dataset.infilling else "end_to_end"
            for dataset in self.study.datasets.values()
            if dataset.path is not None
        }
        given = {
            "checkpoints": {f"{self.mirror}/{name}": family for name, family in families.items()},
            "benchmark": self.suite_source,
            "data": of_format,
            "answers": {path: models.get(unit, "") for unit, path in (self.supplied | self.recorded).items()},
        }
        return {**(self.study.stand_ins or {}), **given}

    @property
    def stand_ins(self) -> list[str]:
        """Files that `dice standins` writes; the folders are `mirror` and `suite_source`."""
        spec = self.stand_ins_spec()
        return [*spec["data"], *spec["answers"]]

    def made(self, path: str) -> bool:
        """Whether the path is a result of this scale."""
        return Path(path).is_relative_to(self.study.results)
