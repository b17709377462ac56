"""Where each result of a scale lies, and what each stage is told: paths and specs, pure functions of the configuration."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dice.config import spec_hash
from dice.errors import DiceError
from dice.manifest import MODEL_MANIFEST
from dice.model.families import FAMILIES
from dice.study.config import Settings, Suite, merged
from dice.study.files import Files
from dice.study.registry import Family, TableRow
from dice.study.units import RECORDED, RELEASED, REREAD, SERVED, SUPPLIED, asked


class Plan(Files):
    """Paths and specs of every stage at one scale."""

    # -- paths -------------------------------------------------------------------------------------------------------

    @property
    def benchmark(self) -> str:
        """Folder of the mini benchmark at the scale's size."""
        return self.path("data", "benchmark")

    @property
    def problems(self) -> str:
        """File of the benchmark's problems."""
        return self.path("data", "problems.jsonl")

    @property
    def prompts(self) -> str:
        """File of their prompts."""
        return self.path("data", "prompts.jsonl")

    @property
    def messages(self) -> str:
        """File of the prompts without chat markup, which servers add themselves."""
        return self.path("data", "messages.jsonl")

    def suite_of(self, exam: str | None) -> Suite:
        """A benchmark; None: the one that the tables are about."""
        return self.study.suite if exam is None else self.study.exams[exam]

    def problems_of(self, exam: str | None) -> str:
        """File of a benchmark's problems."""
        return self.problems if exam is None else self.path("data", "exams", exam, "problems.jsonl")

    def exam_prompts(self, exam: str | None) -> str:
        """File of their prompts."""
        return self.prompts if exam is None else self.path("data", "exams", exam, "prompts.jsonl")

    @property
    def mini_version(self) -> str:
        """The version of mini that is asked."""
        suites = (self.study.suite, *self.study.exams.values())
        return next((suite.version for suite in suites if suite.source == "mini"), self.study.suite.version)

    def model(self, unit: str) -> str:
        """Folder of the unit's checkpoint."""
        return self.path("models", unit)

    def generations(self, unit: str, seed: int) -> str:
        """File of the unit's answers."""
        return self.path("generations", unit, f"seed{seed}.jsonl")

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

    def tokenizer(self, dataset: str) -> str:
        """Folder of the tokenizer that is trained on a data set."""
        return self.path("data", f"{dataset}.tokenizer")

    def verdicts(self, unit: str) -> list[str]:
        """Files of the unit's verdicts, one for each seed."""
        return [self.path("verdicts", unit, f"seed{seed}.jsonl") for seed in self.seeds(unit)]

    # -- data --------------------------------------------------------------------------------------------------------

    def datasets(self, stage: str) -> list[str]:
        """Data sets that the stage makes: `synth`, `curate`, or `file` for the user's."""
        return [name for name, dataset in self.study.datasets.items() if dataset.stage == stage]

    def problems_spec(self, exam: str | None = None) -> dict[str, Any]:
        """Config of `dice problems`; the mini benchmark is first written at its size."""
        suite = self.suite_of(exam)
        source = self.suite_source if exam is None else suite.source
        if source == "mini":
            source = self.benchmark
        elif source in self.study.datasets:
            source = self.pairs(source)
        return {"source": source, "version": suite.version, "levels": suite.levels, "out": self.problems_of(exam)}

    def prompts_spec(self, exam: str | None = None) -> dict[str, Any]:
        """Config of `dice prompts`."""
        return {"tasks": self.problems_of(exam), "out": self.exam_prompts(exam), "prompt": self.prompt}

    def kept_out(self, name: str) -> list[str]:
        """Files of the exams' problems that may not be in a data set; an exam's own data set is held to the suite alone."""
        if any(exam.source == name for exam in self.study.exams.values()):
            return []
        return [self.problems_of(exam) for exam in self.study.exams]

    def messages_spec(self) -> dict[str, Any]:
        """Config of `dice prompts` for servers."""
        return merged(self.prompts_spec(), {"out": self.messages, "prompt": {"chat": "plain", "think": "none"}})

    @property
    def kernelbench(self) -> str | None:
        """Folder with KernelBench's prompt: the one that is named, the checkout that the problems come from, or what the
        rule `kernelbench` fetches; None where prompts have another style."""
        if self.study.prompt.get("style") != "kernelbench":
            return None
        source = self.suite_source
        found = source if source not in ("mini", "huggingface") else self.path("data", "kernelbench")
        return self.study.prompt.get("kernelbench_checkout") or found

    @property
    def prompt(self) -> Settings:
        """How problems become prompts, in training and evaluation."""
        return merged(self.study.prompt, {"kernelbench_checkout": self.kernelbench} if self.kernelbench else {})

    def synth_spec(self, name: str) -> dict[str, Any]:
        """Config of `dice synth`; no problem of the suite, of mini or of the exams may be in a training set."""
        exams = ["mini"] if self.study.suite.source == "mini" else ["mini", self.problems]
        return merged(
            {"benchmarks": exams + self.kept_out(name)}, self.study.datasets[name].spec, {"out": self.pairs(name)}
        )

    def curate_spec(self, name: str) -> dict[str, Any]:
        """Config of `dice curate` without `out`; nothing of the benchmark may be in a training set."""
        dataset = self.study.datasets[name]
        sources = [
            {
                "format": source.format,
                "path": self.pairs(source.path) if source.path in self.study.datasets else self.file(source.path),
                "rule": source.rule,
            }
            for source in dataset.sources
        ]
        given = {"backend": self.study.backend, "sources": sources, "benchmarks": [self.problems, *self.kept_out(name)]}
        return merged(given, dataset.spec)

    def curate_inputs(self, name: str) -> list[str]:
        """The benchmark, and the file of every source."""
        spec = self.curate_spec(name)
        return [*spec["benchmarks"], *(source["path"] for source in spec["sources"])]

    def curate_state(self, name: str) -> str:
        """Undeclared folder where an interrupted verification of pairs resumes, keyed by what it does."""
        return self.path("state", f"{name}-{spec_hash(self.curate_spec(name))[:12]}")

    def infill_spec(self, name: str) -> dict[str, Any]:
        """Config of `dice infill`."""
        return {"pairs": self.pairs(name), "out": self.path("data", f"{name}.infilling.jsonl")}

    def tokenizer_spec(self, name: str) -> dict[str, Any]:
        """Config of `dice tokenizer`."""
        return merged(self.study.tokenizer, {"pairs": [self.dataset(name)], "out": self.tokenizer(name)})

    # -- training ----------------------------------------------------------------------------------------------------

    def training_spec(self, unit: str) -> dict[str, Any]:
        """Config of the stage that trains the unit, without `out`."""
        study, recipe = self.study, self.recipe(unit)
        if recipe is None:
            base = self.base(unit)
            if base.dataset is None:
                raise DiceError(f"{unit}: from scratch needs a data set in sizes.*.*.dataset.")
            objective = "autoregressive" if unit.endswith("-qwen3") else "block_diffusion"
            return merged(
                {"objective": objective, "prompt": self.prompt, "device": study.device},
                base.sft,
                {"pairs": [self.dataset(base.dataset)], "tokenizer": self.tokenizer(base.dataset)},
            )
        stage = {"sft": study.sft, "rl": study.rl}[recipe.stage]
        of_size = {"sft": self.size(unit).sft, "rl": self.size(unit).rl}[recipe.stage]
        given: dict[str, Any] = {"model": self.model(self.parent(unit)), "prompt": self.prompt, "device": study.device}
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

    def training_inputs(self, unit: str) -> list[str]:
        """Files and folders that training the unit reads: data, tokenizer, the parent's checkpoint."""
        spec = self.training_spec(unit)
        problems = [path for phase in spec.get("phases", ()) for path in phase["problems"]]
        folders = (spec.get("tokenizer"), spec.get("model"), self.kernelbench)
        return [*spec.get("pairs", ()), *problems, *filter(None, folders)]

    def state(self, unit: str) -> str:
        """Undeclared folder of a training run, keyed by what it does, so that a changed recipe never resumes an old run."""
        return self.path("state", f"{unit}-{spec_hash(self.training_spec(unit))[:12]}")

    def fetch_spec(self, unit: str) -> dict[str, Any]:
        """Config of `dice fetch` without `out`: a released checkpoint, or a base that is on the hub, at its commit."""
        hub = self.repository(unit)
        revision = next((entry.revision for entry in self.registry.models.values() if entry.hub == hub), None)
        return {"hub": hub, "revision": revision} | ({"mirror": self.mirror} if self.mirror else {})

    def fetch_state(self, unit: str) -> str:
        """Undeclared folder of a download, keyed by what is downloaded."""
        return self.path("state", f"{unit}-{spec_hash(self.fetch_spec(unit))[:12]}")

    # -- evaluation --------------------------------------------------------------------------------------------------

    def generate_spec(self, unit: str, seed: int) -> dict[str, Any]:
        """Config of `dice generate`."""
        decoding: Settings = {}
        name, exam = asked(unit)
        if name.startswith(RELEASED):
            decoding = self.registry.models[name.removeprefix(RELEASED)].decoding
        else:
            named = [entry for entry in self.registry.models.values() if entry.trained == name]
            decoding = named[0].decoding if named else self.decoding_of(self.family(name))
        given = {"model": self.model(name), "prompts": self.prompts_of(unit), "seed": seed}
        given["out"] = self.generations(unit, seed)
        if name.startswith(RELEASED):
            given["family"] = self.family(name)
        if self.prompts_of(unit) == self.messages:
            given["chat"] = "checkpoint"
        own = self.suite_of(exam).generate
        return merged(self._shortened(decoding), {"device": self.study.device}, self.study.generate, own, given)

    def _shortened(self, decoding: Settings) -> Settings:
        """The decoding with the scale's lengths in the place of the paper's."""
        lengths = self.study.new_tokens
        return {
            name: self._shortened(value)
            if isinstance(value, dict)
            else (lengths.get(value, value) if name in ("max_new_tokens", "steps") else value)
            for name, value in decoding.items()
        }

    def ask_spec(self, unit: str, seed: int) -> dict[str, Any]:
        """Config of `dice ask`, for a server or for recorded answers."""
        model = unit.removeprefix(SERVED).removeprefix(RECORDED)
        entry = self.registry.models[model]
        given: dict[str, Any] = {"prompts": self.messages, "out": self.generations(unit, seed), "seed": seed}
        given["samples"] = self.study.generate.get("samples", 1)
        if "max_new_tokens" in (known := merged(self._shortened(entry.decoding), self.study.generate)):
            given["max_new_tokens"] = known["max_new_tokens"]
        if unit.startswith(RECORDED):
            return given | {"answers": self.recorded[unit], "models": list(entry.model_ids)}
        server = self.server(model)
        if "base_url" not in server:
            local = {"checkpoint": self.served_model(unit), "command": self.study.vllm.split()}
            server = merged({"local": local}, server)
        return given | {"server": server, "answers": self.path("answers", unit, f"seed{seed}.jsonl")}

    def served_model(self, unit: str) -> str:
        """Folder of the checkpoint that a local vLLM serves."""
        return self.model(f"{RELEASED}{unit.removeprefix(SERVED)}")

    def prompts_of(self, unit: str) -> str:
        """The prompts that the unit answers: with our chat markup, or without, where the checkpoint has its own."""
        unit, exam = asked(unit)
        family = self.family(unit)
        own = unit.startswith(RELEASED) and family in FAMILIES and FAMILIES[family].chat == "checkpoint"
        return self.messages if own else self.exam_prompts(exam)

    def decoding_of(self, family: Family) -> Settings:
        """Decoding of the paper's own models of a family (A.4.4), for variants without an entry."""
        return next((e.decoding for e in self.registry.models.values() if e.family == family and e.trained), {})

    def is_greedy(self, unit: str) -> bool:
        """Whether every seed gives the unit's answers; a checkpoint of the hub that says itself how to be sampled may not."""
        if unit.startswith(SERVED):
            return self.server(unit.removeprefix(SERVED)).get("temperature") == 0
        spec = self.generate_spec(unit, self.study.seeds[0])
        unit, _ = asked(unit)
        family = self.family(unit)
        sampler = FAMILIES[family].sampler if family in FAMILIES else "autoregressive"
        if sampler in spec or sampler != "autoregressive":
            sampling = spec.get(sampler, {}).get("sampling", {})
        else:
            return not unit.startswith(RELEASED) and (
                self.study.from_scratch or self.base(self.lineage(unit)[-1]).hub is None
            )
        return sampling.get("temperature", 0) == 0 or sampling.get("top_k") == 1

    def seeds(self, unit: str) -> list[int]:
        """Seeds of the unit's answers: one where all give the same."""
        unit = unit.removeprefix(REREAD)
        seeds = super().seeds(unit)
        return seeds[:1] if unit.startswith((SUPPLIED, RECORDED)) or self.is_greedy(unit) else seeds

    def reread_spec(self, unit: str, seed: int) -> dict[str, Any]:
        """Config of `dice reread`."""
        given = {"generations": self.generations(unit.removeprefix(REREAD), seed), "out": self.generations(unit, seed)}
        return given | ({"prompts": self.messages} if self.rereads[unit] == "own_prompt" else {})

    def verify_spec(self, unit: str, seed: int, shard: int | None = None) -> dict[str, Any]:
        """Config of `dice verify`, for one of the study's shards or for all answers."""
        problems = self.problems_of(asked(unit)[1])
        given: dict[str, Any] = {"candidates": self.generations(unit, seed), "problems": problems}
        given["out"] = self.path("verdicts", unit, f"seed{seed}.jsonl")
        if shard is not None:
            given |= {"shard": shard, "shards": self.study.shards}
            given["out"] = self.path("verdicts", unit, f"seed{seed}.shard{shard}.jsonl")
        return merged({"backend": self.study.backend}, self.study.verify, given)

    def score_spec(self, unit: str) -> dict[str, Any]:
        """Config of `dice score`."""
        problems = self.problems_of(asked(unit)[1])
        return {"verdicts": self.verdicts(unit), "problems": problems, "out": self.score(unit)}

    # -- reports -----------------------------------------------------------------------------------------------------

    def histogram(self, number: int) -> str | None:
        """For a histogram: the report of curation, None where nothing is timed at this scale."""
        name = self.registry.tables[number].dataset
        if name is None or name not in self.study.datasets or self.study.datasets[name].stage != "curate":
            return None
        if self.study.backend == "cpu":
            return None
        return self.path("data", name, "report.json")

    def sizes(self, unit: str, columns: Sequence[str]) -> dict[str, list[str]]:
        """Column of a table -> files of the data that the unit was trained on, for a unit that this run trains."""
        if not (self.is_trained(unit) and self.makes("checkpoints")):
            return {}
        recipes = [recipe for ancestor in self.lineage(unit) if (recipe := self.recipe(ancestor))]
        stages = {"dataset_size": "sft", "sft_samples": "sft", "rl_samples": "rl"}
        return {
            column: [self.dataset(recipe.dataset) for recipe in recipes if recipe.stage == stages[column]]
            for column in columns
            if column in stages
        }

    def settings(self, unit: str) -> dict[str, int]:
        """Column of a table -> the setting with which the unit's answers are made; nothing for a user's file."""
        unit = unit.removeprefix(REREAD)
        if unit.startswith((SUPPLIED, RECORDED)):
            return {}
        if unit.startswith(SERVED):
            return {"max_new_tokens": self.ask_spec(unit, self.study.seeds[0])["max_new_tokens"]}
        return {"max_new_tokens": self.generate_spec(unit, self.study.seeds[0])["max_new_tokens"]}

    def measured(self, unit: str) -> dict[str, str]:
        """What the unit is, for the rows that it is measured in: its model and its parameters."""
        found = self._published(unit)
        return found if self.study.stand_ins is None else {"model": f"stand-in {found['model']}"}

    def _published(self, unit: str) -> dict[str, str]:
        size = re.search(r"([\d.]+B)(-|$)", unit)
        params = size[1] if size else ""
        if unit.startswith((SUPPLIED, RECORDED)):
            return {"model": f"{unit.partition('-')[0]} answers"}
        if unit.startswith((RELEASED, SERVED)):
            name = unit.partition("-")[2]
            return {"model": self.registry.models[name].hub or name, "params": params}
        if (small := self.size(unit).parameters) is None:
            return {"model": unit, "params": params}
        return {"model": f"stand-in {unit}", "params": small}

    @property
    def measured_on(self) -> str:
        """The benchmark of the tables; beside that of the paper, and no other, its numbers may stand."""
        version = self.study.suite.version
        return version if self.study.stand_ins is None else f"stand-in {version}"

    def table_spec(self, number: int) -> dict[str, Any]:
        """Config of `dice table`."""
        table = self.registry.tables[number]
        rows = []
        for row in table.rows:
            found = self.evidence(row)
            if row.added and found.unit is None:
                continue
            score = self.score(found.unit) if found.unit else None
            given: dict[str, Any] = {"row": row.row, "score": score, "reason": found.reason, "robust": row.robust}
            given |= {"withdrawn": found.withdrawn, "added": row.added}
            given["measured"] = self.measured(found.unit) if found.unit else {}
            if found.unit and table.numbers:
                given |= {"sizes": self.sizes(found.unit, table.numbers), "settings": self.settings(found.unit)}
            rows.append(given)
            if row.unchecked and score is not None:
                rows.append(given | {"row": f"{row.row}-unchecked", "robust": False, "paper": row.row})
            if row.released and found.unit is not None:
                score = self.score(f"{REREAD}{found.unit}")
                rows.append(given | {"row": f"{row.row}-released", "score": score, "paper": row.row})
        stages = [
            {
                "stage": stage,
                "manifest": f"{self.model(unit)}/{MODEL_MANIFEST}" if unit else None,
                "measured": self.measured(unit) if unit else {},
            }
            for stage, unit in self.cost_units(number).items()
        ]
        return {
            "number": number,
            "title": table.title,
            "kind": table.kind,
            "reported": f"experiments/reported/table{number}.csv",
            "rows": rows,
            "numbers": list(table.numbers),
            "stages": stages,
            "speedups": self.histogram(number),
            "reason": f"the scale {self.study.scale} times no training pairs" if table.kind == "histogram" else "",
            "scale": self.study.scale,
            "benchmark": self.measured_on,
            "out": self.path(f"table{number}.csv"),
        }

    def figure_spec(self, number: int) -> dict[str, Any]:
        """Config of `dice figure`; units that this scale does not have are left out."""
        figure = self.registry.figures[number]
        found = (self.evidence(TableRow(row=unit, unit=unit)).unit for unit in figure.units)
        units = [unit for unit in found if unit is not None]
        spec: dict[str, Any] = {
            "number": number,
            "title": figure.title,
            "kind": figure.kind,
            "scale": self.study.scale,
            "tables": [self.path(f"table{table}.csv") for table in figure.tables],
            "out": self.path(f"figure{number}.csv"),
        }
        if figure.kind == "overview":
            spec["histories"] = {u: f"{self.model(u)}/history.jsonl" for u in units if self.is_trained(u)}
        elif figure.kind == "failures":
            spec["scores"] = {unit: self.score(unit) for unit in units}
        elif figure.kind == "decoding_order" and units:
            spec["generations"] = self.generations(units[0], self.study.seeds[0])
        elif figure.kind == "components" and "rl_infilling" in self.study.datasets:
            spec["pairs"] = self.dataset("rl_infilling")
        elif figure.kind == "pipeline":
            named = {"CuKe pairs": "cuke", "infilling problems": "rl_infilling", "end-to-end problems": "rl_end_to_end"}
            spec["files"] = {box: self.dataset(name) for box, name in named.items() if name in self.study.datasets}
            spec["files"]["benchmark problems"] = self.problems
        return spec

    def table_inputs(self, number: int) -> list[str]:
        """What a table is made from: scores of its rows, counted data and models, the report of curation."""
        models = [self.model(unit) for unit in self.cost_units(number).values() if unit]
        report = [path for path in [self.histogram(number)] if path]
        columns, units = self.registry.tables[number].numbers, self.table_units(number)
        data = [path for unit in units for files in self.sizes(unit, columns).values() for path in files]
        return [*map(self.score, units), *dict.fromkeys(data), *models, *report]

    def figure_inputs(self, number: int) -> list[str]:
        """Files that a figure is drawn from; a history stands for the model's folder that holds it."""
        spec = self.figure_spec(number)
        inputs = [*spec["tables"], *spec.get("scores", {}).values(), *spec.get("files", {}).values()]
        inputs += [str(Path(path).parent) for path in spec.get("histories", {}).values()]
        return inputs + [spec[name] for name in ("generations", "pairs") if name in spec]

    def check_spec(self) -> dict[str, Any]:
        """Config of `dice check`."""
        pairs = []
        for number, table in self.registry.tables.items():
            units = {row.row: self.evidence(row).unit for row in table.rows}
            for row in table.rows:
                against = row.against or table.against
                one, other = units[row.row], units.get(against or "")
                if against is not None and one and other and one != other:
                    scores = {"score": self.score(one), "score_against": self.score(other)}
                    pairs.append({"table": f"table{number}", "row": row.row, "against": against, **scores})
        return {"tables": self.tables, "pairs": pairs, "out": self.path("check.csv")}

    def check_inputs(self) -> list[str]:
        """Tables, and the scores that are compared."""
        pairs = self.check_spec()["pairs"]
        return [*self.tables, *dict.fromkeys(pair[name] for pair in pairs for name in ("score", "score_against"))]

    @property
    def tables(self) -> list[str]:
        """All tables."""
        return [self.path(f"table{number}.csv") for number in self.registry.tables]

    @property
    def figures(self) -> list[str]:
        """All figures."""
        return [self.path(f"figure{number}.csv") for number in self.registry.figures]

    def explorer_spec(self) -> dict[str, Any]:
        """Config of `dice explorer`."""
        units = {unit: self.seeds(unit) for unit in self.units}
        given = {"tables": self.tables, "units": units, "problems": self.problems}
        return {**given, "results": self.study.results, "out": self.path("explorer")}

    # -- costs -------------------------------------------------------------------------------------------------------

    @property
    def job_gpus(self) -> int:
        """GPUs of a job that is not training."""
        return min(1, self.study.gpus)

    def job_costs(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Rule -> unit -> (GPU-hours, gigabytes on disk) that one of its jobs is to be expected to take.

        Gigabytes: 2 a billion parameters for a checkpoint of the hub's size, and 12 (weights and AdamW's state in fp32) for
        each state that training keeps. Models that are made here are small and count as nothing.
        """
        costs, kept = self.study.costs, {"sft": 1, "rl": 2}
        found: dict[str, dict[str, tuple[float, float]]] = {
            name: {} for name in ("fetch", "sft", "rl", "generate", "verify")
        }
        for unit in self.models:
            rule, recipe, released = self.model_rule(unit), None, unit.startswith(RELEASED)
            size = re.search(r"([\d.]+)B", unit)
            billions = float(size[1]) if size else 0.0
            if not released:
                recipe = self.recipe(unit)
                billions *= self.base(self.lineage(unit)[-1]).hub is not None
            if rule == "fetch":
                found["fetch"][unit] = (0.0, 2 * billions)
            elif rule in kept and recipe is not None:
                name = "rl_infilling" if recipe.task == "infilling" else recipe.stage
                hours = {"sft": costs.sft, "rl": costs.rl, "rl_infilling": costs.rl_infilling}[name]
                share = float(self.size_and_recipe(unit)[0].removesuffix("B")) / 8.0
                found[rule][unit] = (hours * share, (2 + 12 * kept[rule]) * billions)
        for unit in self.units:
            found["generate"][unit] = (0.0 if unit.startswith(REREAD) else costs.generate, 0.0)
            found["verify"][unit] = (costs.verify / self.study.shards, 0.0)
        return found | {"serve": found["generate"]}

    def hub_facts(self) -> dict[str, tuple[float, str]]:
        """Released model -> (GiB of a GPU that its weights alone take in 16 bits, licence)."""
        facts: dict[str, tuple[float, str]] = {}
        for name, entry in self.registry.models.items():
            size = re.search(r"([\d.]+)B", name)
            if entry.hub is not None and size is not None:
                weights = 2e9 * float(size[1]) / 2**30
                facts[name] = (weights, self.registry.hub[entry.hub].licence)
        return facts

    def hours(self, units: list[str]) -> dict[str, float]:
        """GPU-hours that are to be expected, by stage, for the units and what they are trained from."""
        costs = self.job_costs()
        trained = {ancestor for unit in units if self.is_trained(unit) for ancestor in self.lineage(unit)}
        total = {rule: sum(costs[rule][unit][0] for unit in trained & costs[rule].keys()) for rule in ("sft", "rl")}
        answered = [unit for unit in units for _ in self.seeds(unit)]
        total["generate"] = sum(costs["generate"][unit][0] for unit in answered)
        total["verify"] = sum(costs["verify"][unit][0] for unit in answered) * self.study.shards
        return {name: round(value, 1) for name, value in total.items()}

    def job_seconds(self) -> dict[str, float]:
        """Rule -> seconds that one of its jobs is expected to take, for the rules whose cost is known."""
        costs, gpus = self.study.costs, max(1, self.study.gpus)
        hours = {
            "synth": costs.synth,
            "sft": costs.sft / gpus,
            "rl": (costs.rl_infilling + costs.rl) / 2 / gpus,
            "generate": costs.generate,
            "verify": costs.verify / self.study.shards,
        }
        return {rule: 3600 * value for rule, value in hours.items() if value}


def canonical(spec: dict[str, Any]) -> str:
    """The JSON text that stands in a rule's params: one text for one meaning."""
    return json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
