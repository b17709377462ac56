# Models: bases, fine-tuned models, reinforcement learning. A run works in an undeclared folder below state/, named by
# what it does, and resumes there; what it made is copied to models/ when it has ended.
BASES = [f"{size}-{kind}" for size in STUDY.sizes for kind in ("base", "qwen3")]
BASES = [unit for unit in BASES if PLAN.is_trained(unit)]
GIVEN_BASES = [
    unit for unit in BASES if PLAN.base(unit).checkpoint and not STUDY.from_scratch
]
HUB_BASES = [
    unit
    for unit in BASES
    if PLAN.base(unit).hub and not PLAN.base(unit).checkpoint and not STUDY.from_scratch
]
SCRATCH = [unit for unit in BASES if unit not in GIVEN_BASES + HUB_BASES]
DERIVED = [f"{size}-{recipe}" for size in STUDY.sizes for recipe in STUDY.recipes]
DERIVED = [unit for unit in DERIVED if PLAN.is_trained(unit)]
TUNED = SCRATCH + [unit for unit in DERIVED if PLAN.recipe(unit).stage == "sft"]
REINFORCED = [unit for unit in DERIVED if PLAN.recipe(unit).stage == "rl"]
RELEASED = [f"hub-{name}" for name, entry in PLAN.registry.models.items() if entry.hub]
HERE = evidence_from("scratch")


def training_inputs(wildcards):
    """The parent's checkpoint and the data."""
    return PLAN.training_inputs(wildcards.unit)


def training_spec(wildcards):
    """Configuration of the stage, with the folder of its state."""
    spec = PLAN.training_spec(wildcards.unit)
    return canonical(merged(spec, {"out": PLAN.state(wildcards.unit)}))


def state(wildcards):
    """Folder of the run's state."""
    return PLAN.state(wildcards.unit)


def checkpoint(wildcards):
    """Folder of a base model that was given."""
    return PLAN.base(wildcards.unit).checkpoint


def checkpoint_files(wildcards):
    """Its files, where they are there."""
    return sorted(
        str(path) for path in Path(checkpoint(wildcards)).glob("*") if path.is_file()
    )


rule base:
    input:
        checkpoint_files,
    output:
        directory(PLAN.path("models", "{unit}")),
    log:
        PLAN.path("logs", "base-{unit}.log"),
    wildcard_constraints:
        unit=one_of(GIVEN_BASES if HERE else []),
    container:
        image("cpu")
    params:
        checkpoint=checkpoint,
    shell:
        """
        test -f {params.checkpoint:q}/config.json || {{ echo "{params.checkpoint}: no base checkpoint there; train one with --config from_scratch=true." | tee {log} >&2; exit 2; }}
        cp -r {params.checkpoint:q} {output:q} 2>{log}
        """


def hub_id(wildcards):
    """Repository of a released checkpoint, and its pinned revision or `main`."""
    unit = wildcards.unit
    if unit.startswith("hub-"):
        entry = PLAN.registry.models[unit.removeprefix("hub-")]
        return f"{entry.hub} --revision {entry.revision or 'main'}"
    hub = PLAN.base(unit).hub
    entries = [entry for entry in PLAN.registry.models.values() if entry.hub == hub]
    revision = (entries[0].revision if entries else None) or "main"
    return f"{hub} --revision {revision}"


rule fetch:
    output:
        directory(PLAN.path("models", "{unit}")),
    log:
        PLAN.path("logs", "fetch-{unit}.log"),
    wildcard_constraints:
        unit=one_of(RELEASED + (HUB_BASES if HERE else [])),
    retries: 3
    container:
        image("cuda")
    params:
        hub=hub_id,
    shell:
        "hf download {params.hub} --local-dir {output:q} > {log} 2>&1"


rule sft:
    input:
        training_inputs,
        code=code("sft"),
    output:
        directory(PLAN.path("models", "{unit}")),
    log:
        PLAN.path("logs", "sft-{unit}.log"),
    wildcard_constraints:
        unit=one_of(TUNED if HERE else []),
    container:
        image("cuda" if STUDY.gpus else "cpu")
    threads: 2
    resources:
        gpu=STUDY.gpus,
    params:
        spec=training_spec,
        state=state,
    shell:
        """
        dice lease --gpus {resources.gpu} -- dice sft --config {params.spec:q} >{log} 2>&1
        rm -rf {output:q}
        cp -r {params.state}/model {output:q}
        cp {params.state}/history.jsonl {params.state}/model.manifest.json {output:q}
        """


rule rl:
    input:
        training_inputs,
        code=code("rl"),
    output:
        directory(PLAN.path("models", "{unit}")),
    log:
        PLAN.path("logs", "rl-{unit}.log"),
    wildcard_constraints:
        unit=one_of(REINFORCED if HERE else []),
    container:
        image("cuda" if STUDY.gpus else "cpu")
    threads: 2
    resources:
        gpu=STUDY.gpus,
    params:
        spec=training_spec,
        state=state,
    shell:
        """
        dice lease --gpus {resources.gpu} -- dice rl --config {params.spec:q} >{log} 2>&1
        rm -rf {output:q}
        cp -r {params.state}/model {output:q}
        cp {params.state}/history.jsonl {params.state}/model.manifest.json {output:q}
        """


def archived(*parts):
    """A path in the archive of an earlier run."""
    return "/".join((STUDY.archive or "archive", *parts))


rule archived_model:
    input:
        archived("models", "{unit}"),
    output:
        directory(PLAN.path("models", "{unit}")),
    log:
        PLAN.path("logs", "archived-model-{unit}.log"),
    wildcard_constraints:
        unit=one_of([] if HERE else BASES + DERIVED),
    container:
        image("cpu")
    shell:
        "cp -r {input:q} {output:q} 2> {log}"
