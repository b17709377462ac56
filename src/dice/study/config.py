"""The study's configuration: experiments/config/common.yaml under experiments/config/<scale>.yaml.

The dataclasses say what may stand there; `study_schema` turns them into docs/schema/study.schema.json, in which
the settings of a stage are checked against that stage's own dataclass.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from dice.config import parse_config, read_yaml, schema_of, stage_config, to_spec
from dice.errors import DiceError
from dice.kernels.api import MINI_VERSION

StartFrom = Literal["scratch", "checkpoints", "generations", "verdicts"]
MINI_VERSIONS = (f"{MINI_VERSION}-cpu", f"{MINI_VERSION}-gpu")
Settings = dict[str, Any]
"""Fields of a stage's config, without those that the workflow gives."""


@stage_config
class Suite:
    """The benchmark."""

    source: str = "mini"
    """`mini`, `huggingface`, a folder of problems (a checkout of KernelBench), or a data set of the study, whose programs
    are the problems."""
    further: tuple[str, ...] = ()
    """Data sets of the study whose programs are asked with those of the data set `source`."""
    version: str = "mini-2-cpu"
    """Named version; `mini-2-cpu` and `mini-2-gpu` are the two sizes of the mini benchmark."""
    levels: tuple[int, ...] = Field(default=(1, 2, 3), min_length=1)
    """Levels to evaluate."""
    generate: Settings = Field(default_factory=dict)
    """Settings of `dice generate` for it, over the scale's: `samples` and a temperature where pass@k is wanted."""
    verify: Settings = Field(default_factory=dict)
    """Settings of `dice verify` for it, over the scale's: `backend: cpu` where kernels are small and a GPU has other work."""

    @property
    def sources(self) -> tuple[str, ...]:
        """All that its problems come from."""
        return self.source, *self.further


@stage_config
class PairSource:
    """One source of a curated set."""

    format: str
    """Row format (dice.data.sources)."""
    path: str
    """A data set of the study, or the user's file."""
    rule: Settings | None = None
    """What its pairs must show (dice.data.selection.Rule); None: the paper's rule for the format."""


@stage_config
class Dataset:
    """A set of pairs."""

    stage: Literal["synth", "curate", "file"]
    """Written by a stage, or a file that the user supplies."""
    spec: Settings = Field(default_factory=dict)
    """Settings of the stage."""
    path: str | None = None
    """The user's file, for `file`."""
    sources: tuple[PairSource, ...] = ()
    """For `curate`, in order of preference."""
    infilling: bool = False
    """Split every pair into prefix, middle and suffix (`dice infill`)."""


@stage_config
class Base:
    """Where a base model comes from."""

    checkpoint: str | None = None
    """Folder with weights and tokenizer."""
    hub: str | None = None
    """Hugging Face id, fetched at the revision of models.yaml."""
    dataset: str | None = None
    """Pairs to train on from scratch, where there is no checkpoint or `from_scratch` is set."""
    further: tuple[str, ...] = ()
    """Data sets that it reads from scratch as well; the tokenizer is trained on `dataset` alone."""
    sft: Settings = Field(default_factory=dict)
    """The recipe from scratch: settings of `dice sft`, with the geometry."""

    @property
    def datasets(self) -> tuple[str, ...]:
        """All data sets that it reads from scratch."""
        return (self.dataset, *self.further) if self.dataset else ()


@stage_config
class Size:
    """One of the paper's three sizes, as it is at this scale."""

    sdar: Base
    """Stand-in of SDAR-Chat, or SDAR-Chat itself."""
    qwen3: Base | None = None
    """Stand-in of Qwen3; None: its rows stay `reported`."""
    parameters: str | None = None
    """Parameters of the models that stand in for the paper's of this size, such as `2.9M`; None: they are the paper's."""
    sft: Settings = Field(default_factory=dict)
    """Settings of `dice sft` for this size."""
    rl: Settings = Field(default_factory=dict)
    """Settings of `dice rl` for this size."""


@stage_config
class Recipe:
    """How a trained model comes from its parent."""

    stage: Literal["sft", "rl"]
    """The stage that trains it."""
    parent: str
    """`base`, `qwen3`, or another recipe."""
    dataset: str
    """Pairs to train on; at a scale without this data set the recipe does not exist."""
    task: Literal["end_to_end", "infilling"] = "end_to_end"
    """Task of an RL phase."""
    order: Literal["paper", "uniform", "released"] = "paper"
    """Order of an RL phase's problems: easy to hard, no curriculum, or as the authors' code does."""
    spec: Settings = Field(default_factory=dict)
    """Settings of the stage that differ from the scale's."""


@stage_config
class Costs:
    """Hours of a job, on which no result depends: for the time left that a run prints, and, where there are GPUs, the
    GPU-hours that a dry run prints."""

    synth: float = 0.0
    """A set of synthetic pairs."""
    sft: float = 0.0
    """A fine-tuning run of the largest size."""
    rl_infilling: float = 0.0
    """The infilling phase of the largest size."""
    rl: float = 0.0
    """An end-to-end phase of the largest size."""
    generate: float = 0.0
    """A million decoding steps of the largest size, each for one answer from a cache: 4,447 tokens a second of SDAR-8B on an
    H200 are 0.0625 (docs/measurements/decoding.md). `dice.study.costs` says how many steps a row takes."""
    verify: float = 0.0
    """Verdicts of a hundred answers."""


@stage_config
class Study:
    """Everything that a scale decides."""

    scale: str
    """Name of the scale; it stands in every row of every table."""
    results: str
    """Folder of all outputs."""
    start_from: StartFrom = "scratch"
    """Where the study begins; everything before is taken from `archive`."""
    archive: str | None = None
    """Results folder of an earlier run (models/, generations/, verdicts/)."""
    from_scratch: bool = False
    """Train the base models anew although a checkpoint is given."""
    backend: Literal["cpu", "cuda"]
    """Where kernels run. `cpu` measures no speed."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where models run."""
    gpus: int = Field(default=0, ge=0)
    """GPUs of a training job; generation and verification take one where this is not 0."""
    processes: int | None = Field(default=None, ge=1)
    """Processes of a training job; None: one for each GPU."""
    threads: int = Field(default=2, ge=1)
    """CPU threads of a training, generation or verification job. On a CPU, several jobs with one thread get more
    done than one with several."""
    seeds: tuple[Annotated[int, Field(ge=0)], ...] = Field(default=(0,), min_length=1)
    """Seeds of generation; verdicts of all seeds are pooled and their spread is reported."""
    train_each_seed: bool = False
    """Train every recipe once with each seed, from the one base; the answers of a seed are those of its run."""
    shards: int = Field(default=1, ge=1)
    """Verification jobs for each model and seed; no effect on verdicts."""
    suite: Suite = Suite()
    """The benchmark that the tables are about."""
    exams: dict[Annotated[str, Field(pattern=r"^[a-z0-9_]+$")], Suite] = Field(default_factory=dict)
    """More benchmarks by name, which the models made here are asked as well (`exams.csv`); none of their problems is
    trained on."""
    stand_ins: Settings | None = None
    """Settings of `dice standins`, which writes files in the place of the hub's, KernelBench's and the user's; None: those
    are taken."""
    datasets: dict[str, Dataset]
    """Data sets by name."""
    sizes: dict[str, Size]
    """Models by the paper's size."""
    left_out: dict[str, str] = Field(default_factory=dict)
    """Size or recipe that has no models at this scale -> why; its rows stay `reported` and say so."""
    recipes: dict[str, Recipe]
    """Trained variants by name."""
    tokenizer: Settings = Field(default_factory=dict)
    """Settings of `dice tokenizer` for bases from scratch."""
    prompt: Settings = Field(default_factory=dict)
    """How problems become prompts; training and evaluation share it."""
    sft: Settings = Field(default_factory=dict)
    """Settings of `dice sft` at this scale."""
    rl: Settings = Field(default_factory=dict)
    """Settings of `dice rl` at this scale."""
    rl_steps: dict[Literal["end_to_end", "infilling"], int] = Field(
        default_factory=lambda: {"infilling": 20, "end_to_end": 100}
    )
    """Steps of an RL phase by task (paper, A.4.2)."""
    new_tokens: dict[int, int] = Field(default_factory=dict)
    """Longest answers (and steps) of models.yaml -> what this scale takes for them."""
    generate: Settings = Field(default_factory=dict)
    """Settings of `dice generate` at this scale."""
    verify: Settings = Field(default_factory=dict)
    """Settings of `dice verify` at this scale."""
    hub_rows: bool = False
    """Evaluate released checkpoints for the rows that name one and are not trained here."""
    supplied: dict[str, str] = Field(default_factory=dict)
    """Row -> file of candidates that the user supplies (CUDA-L1's published solutions); missing rows stay reported."""
    recorded: dict[str, str] = Field(default_factory=dict)
    """Row -> file of recorded answers (docs/guides/servers.md), for models that can no longer be called."""
    servers: dict[str, Settings] = Field(default_factory=dict)
    """Row -> settings of the server that answers for it, over those of models.yaml; without `base_url` a local vLLM."""
    own_engine: dict[str, Settings] = Field(default_factory=dict)
    """With `hub_rows`: row that our own engine decodes, also where models.yaml names a server -> settings of `dice generate`
    for it, over all others."""
    local_rows: bool = True
    """With `hub_rows`: start a local vLLM for the released checkpoints that our own engine does not decode."""
    accept: tuple[str, ...] = ()
    """Repositories of the hub whose terms (experiments/hub.yaml) the user has read and keeps to."""
    vllm: str = "vllm"
    """How vLLM is started: a command, or its path in an environment of its own."""
    costs: Costs = Costs()
    """What jobs are expected to take."""

    @property
    def bases(self) -> list[Base]:
        """The base models of all sizes."""
        return [base for size in self.sizes.values() for base in (size.sdar, size.qwen3) if base is not None]


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Deep merge, later layers win; lists are replaced."""
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            old = result.get(key)
            result[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


def scales(folder: str | Path) -> list[str]:
    """Names of the scales in experiments/config."""
    return sorted(path.stem for path in Path(folder).glob("*.yaml") if path.stem != "common")


def load_study(folder: str | Path, scale: str, overrides: Mapping[str, Any] | None = None) -> Study:
    """The study of `scale`; a scale may build on another with `extends`, and drop a size or an exam of it with null.

    Raises DiceError in one sentence."""
    folder = Path(folder)
    known = scales(folder)
    if scale not in known:
        raise DiceError(f"scale '{scale}' is not one of {', '.join(known)}.")
    layers = [read_yaml(folder / f"{scale}.yaml")]
    while (parent := layers[0].pop("extends", None)) is not None:
        if parent not in known:
            raise DiceError(f"{folder}/{scale}.yaml: extends '{parent}', which is not one of {', '.join(known)}.")
        if len(layers) == len(known):
            raise DiceError(f"{folder}/{scale}.yaml: the scales that it extends form a circle.")
        layers.insert(0, read_yaml(folder / f"{parent}.yaml"))
    values = merged(read_yaml(folder / "common.yaml"), *layers, overrides or {})
    values["scale"] = scale
    for key in ("sizes", "exams"):
        if isinstance(values.get(key), dict):
            values[key] = {name: one for name, one in values[key].items() if one is not None}
    study = parse_config(Study, values, f"experiments/config, scale {scale}")
    check_study(study)
    return study


def check_study(study: Study) -> None:
    """What a schema cannot say. Raises DiceError in one sentence."""
    for name, recipe in study.recipes.items():
        if recipe.parent not in {"base", "qwen3", *study.recipes}:
            raise DiceError(f"recipes.{name}.parent: no recipe '{recipe.parent}'.")
        seen, parent = {name}, recipe.parent
        while parent in study.recipes:
            if parent in seen:
                raise DiceError(f"recipes.{name}: its parents form a circle through '{parent}'.")
            seen.add(parent)
            parent = study.recipes[parent].parent
    for name, dataset in study.datasets.items():
        if dataset.stage == "file" and dataset.path is None:
            raise DiceError(f"datasets.{name}: a data set of stage 'file' needs a path.")
    if len(set(study.seeds)) < len(study.seeds):
        raise DiceError(f"seeds: {list(study.seeds)} names a seed twice; its answers would count twice.")
    for place, suite in {"suite": study.suite, **{f"exams.{name}": exam for name, exam in study.exams.items()}}.items():
        if suite.further and not study.datasets.keys() >= {*suite.sources}:
            raise DiceError(f"{place}.further: {', '.join(suite.sources)} are not all data sets of the study.")
        if suite.source == "mini" and suite.version not in MINI_VERSIONS:
            raise DiceError(f"{place}.version: mini has no '{suite.version}', but {' and '.join(MINI_VERSIONS)}.")
    versions = [study.suite.version, *(exam.version for exam in study.exams.values())]
    if len(set(versions)) < len(versions):
        twice = next(version for version in versions if versions.count(version) > 1)
        raise DiceError(f"exams: two benchmarks have the version '{twice}'; rows are told apart by it.")
    if (sizes := {suite.version for suite in (study.suite, *study.exams.values()) if suite.source == "mini"}) and (
        len(sizes) > 1
    ):
        raise DiceError(f"exams: mini is asked in two sizes, {' and '.join(sorted(sizes))}; take one.")
    used = {recipe.dataset for recipe in study.recipes.values()}
    for base in study.bases:
        if base.further and not base.dataset:
            raise DiceError(f"sizes.*.*.further: {base.further[0]} is read beside `dataset`; name that too.")
        for name in base.datasets:
            if name not in study.datasets:
                raise DiceError(f"sizes.*.*: a base reads the data set '{name}', which there is not.")
    used |= {name for base in study.bases for name in base.datasets}
    used |= {source.path for dataset in study.datasets.values() for source in dataset.sources}
    for name, exam in study.exams.items():
        if source := next((source for source in exam.sources if source in used), None):
            raise DiceError(f"exams.{name}: models are trained on the data set '{source}'; draw another.")
    if study.start_from == "scratch":
        return
    if study.archive is None:
        raise DiceError(f"start_from is {study.start_from}: name the results folder to start from as `archive`.")
    if Path(study.archive).resolve() == Path(study.results).resolve():
        raise DiceError(f"archive: {study.archive} is where the results go; name another folder as `results`.")


def check_schema(study: Study, path: str | Path) -> None:
    """Validate the settings of every stage against the shipped schema. Raises DiceError with the first that is wrong."""
    from jsonschema import Draft202012Validator

    schema = json.loads(Path(path).read_text(encoding="utf-8"))
    for error in Draft202012Validator(schema).iter_errors(to_spec(study)):
        place = ".".join(str(part) for part in error.absolute_path)
        raise DiceError(f"experiments/config, scale {study.scale}: '{place}': {error.message}.")


def _settings_schema(config_type: type) -> dict[str, Any]:
    """A stage's schema as settings: nothing is required, unknown keys are refused."""
    schema = schema_of(config_type)
    schema.pop("required", None)
    schema["additionalProperties"] = False
    return schema


def study_schema() -> dict[str, Any]:
    """JSON Schema of a merged configuration. Imports the stages, and so torch."""
    from dice.data.curate import CurateConfig
    from dice.data.synthetic.stage import SynthConfig
    from dice.data.tokenizer import TokenizerConfig
    from dice.evaluation.generate import GenerateConfig
    from dice.evaluation.prompts import PromptConfig
    from dice.kernels.api import VerifyConfig
    from dice.servers.config import ServerConfig
    from dice.training.rl_config import RlConfig
    from dice.training.sft_config import SftConfig

    schema = schema_of(Study)
    definitions = schema["$defs"]
    stages = {
        "tokenizer": TokenizerConfig,
        "prompt": PromptConfig,
        "sft": SftConfig,
        "rl": RlConfig,
        "generate": GenerateConfig,
        "verify": VerifyConfig,
        "synth": SynthConfig,
        "curate": CurateConfig,
        "server": ServerConfig,
    }
    for name, config_type in stages.items():
        part = _settings_schema(config_type)
        definitions.update({key: value for key, value in part.pop("$defs", {}).items() if key not in definitions})
        definitions[f"settings_{name}"] = part
    for owner, fields in (
        (schema["properties"], ("tokenizer", "prompt", "sft", "rl", "generate", "verify")),
        (definitions["Size"]["properties"], ("sft", "rl")),
        (definitions["Base"]["properties"], ("sft",)),
        (definitions["Suite"]["properties"], ("generate", "verify")),
    ):
        for field in fields:
            described = {key: owner[field][key] for key in ("description", "default") if key in owner[field]}
            owner[field] = {"$ref": f"#/$defs/settings_{field}", **described}
    definitions["Dataset"]["allOf"] = [
        {
            "if": {"properties": {"stage": {"const": stage}}},
            "then": {"properties": {"spec": {"$ref": f"#/$defs/settings_{stage}"}}},
        }
        for stage in ("synth", "curate")
    ]
    for field, stage in (("servers", "server"), ("own_engine", "generate")):
        schema["properties"][field]["additionalProperties"] = {"$ref": f"#/$defs/settings_{stage}"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Study", **schema}
