"""Where each result of a scale lies, and what the stages up to the scores are told: pure functions of the configuration."""

from __future__ import annotations

from typing import Any

from dice.config import spec_hash
from dice.errors import DiceError
from dice.model.families import FAMILIES
from dice.study.config import Settings, Suite, merged
from dice.study.files import Files
from dice.study.registry import Family
from dice.study.units import RECORDED, RELEASED, REREAD, SERVED, SUPPLIED, asked


class Plan(Files):
    """Paths at one scale, and the specs of its stages up to the scores; those of the reports: `dice.study.reports`."""

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

    @property
    def measured_on(self) -> str:
        """The benchmark of the tables; beside that of the paper, and no other, its numbers may stand."""
        version = self.study.suite.version
        return version if self.study.stand_ins is None else f"stand-in {version}"

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
        spec = {"source": source, "version": suite.version, "levels": suite.levels, "out": self.problems_of(exam)}
        return spec | ({"further": tuple(map(self.pairs, suite.further))} if suite.further else {})

    def problem_files(self, exam: str | None = None) -> list[str]:
        """What `dice problems` reads."""
        spec = self.problems_spec(exam)
        return [spec["source"], *spec.get("further", ())]

    def prompts_spec(self, exam: str | None = None) -> dict[str, Any]:
        """Config of `dice prompts`."""
        return {"tasks": self.problems_of(exam), "out": self.exam_prompts(exam), "prompt": self.prompt}

    def kept_out(self, name: str) -> list[str]:
        """Files of the exams' problems that may not be in a data set.

        An exam's own data set is held to the suite alone. So is what embedded checkpoints have read: it is drawn as it was.
        """
        if any(name in exam.sources for exam in self.study.exams.values()) or name in self.read_by_embedded:
            return []
        return [self.problems_of(exam) for exam in self.study.exams]

    @property
    def read_by_embedded(self) -> set[str]:
        """Data sets that base checkpoints of the repository have read."""
        return {name for base in self.study.bases if base.checkpoint for name in base.datasets}

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
                {"pairs": [self.dataset(name) for name in base.datasets], "tokenizer": self.tokenizer(base.dataset)},
            )
        stage = {"sft": study.sft, "rl": study.rl}[recipe.stage]
        of_size = {"sft": self.size(unit).sft, "rl": self.size(unit).rl}[recipe.stage]
        given: dict[str, Any] = {"model": self.model(self.parent(unit)), "prompt": self.prompt, "device": study.device}
        if study.train_each_seed:
            given["seed"] = self.run_seed(unit)
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
        of_row: Settings = {}
        name, exam = asked(unit)
        if name.startswith(RELEASED):
            model = name.removeprefix(RELEASED)
            decoding, of_row = self.registry.models[model].decoding, self.study.own_engine.get(model, {})
        else:
            named = [entry for entry in self.registry.models.values() if entry.trained == name]
            decoding = named[0].decoding if named else self.decoding_of(self.family(name))
        given = {"model": self.model(self.run(name, seed)), "prompts": self.prompts_of(unit), "seed": seed}
        given["out"] = self.generations(unit, seed)
        if name.startswith(RELEASED):
            given["family"] = self.family(name)
        if self.prompts_of(unit) == self.messages:
            given["chat"] = "checkpoint"
        own = self.suite_of(exam).generate
        return merged(self._shortened(decoding), {"device": self.study.device}, self.study.generate, own, of_row, given)

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
        known = merged(self._shortened(entry.decoding), self.study.generate, self.study.suite.generate)
        given["samples"] = known.get("samples", 1)
        if "max_new_tokens" in known:
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
        """Whether the unit's answers are not sampled; a checkpoint of the hub that says itself how to be sampled may be."""
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

    def is_same_each_seed(self, unit: str) -> bool:
        """Whether every seed gives the unit's answers: a file of answers, or one model that is decoded greedily."""
        if unit.startswith((SUPPLIED, RECORDED)):
            return True
        return len(self.runs(asked(unit)[0])) == 1 and self.is_greedy(unit)

    def seeds(self, unit: str) -> list[int]:
        """Seeds of the unit's answers: one where all give the same, 0 of a user's file."""
        unit = unit.removeprefix(REREAD)
        if unit.startswith((SUPPLIED, RECORDED)):
            return [0]
        seeds = list(self.study.seeds)
        return seeds[:1] if self.is_same_each_seed(unit) else seeds

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
        own = self.suite_of(asked(unit)[1]).verify
        return merged({"backend": self.study.backend}, self.study.verify, own, given)

    def verify_gpus(self, unit: str) -> int:
        """GPUs of a job that verifies the unit's answers."""
        return 0 if self.verify_spec(unit, self.study.seeds[0])["backend"] == "cpu" else self.job_gpus

    def score_spec(self, unit: str) -> dict[str, Any]:
        """Config of `dice score`."""
        problems = self.problems_of(asked(unit)[1])
        return {"verdicts": self.verdicts(unit), "problems": problems, "out": self.score(unit)}

    @property
    def tables(self) -> list[str]:
        """All tables."""
        return [self.path(f"table{number}.csv") for number in self.registry.tables]

    @property
    def figures(self) -> list[str]:
        """All figures."""
        return [self.path(f"figure{number}.csv") for number in self.registry.figures]

    @property
    def job_gpus(self) -> int:
        """GPUs of a job that is not training."""
        return min(1, self.study.gpus)
