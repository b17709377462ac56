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
    """Configuration of the stage; the rule adds the folder of its state."""
    return canonical(PLAN.training_spec(wildcards.unit))


def state(wildcards):
    """Folder of the run's state; the rule adds a digest of its inputs."""
    return PLAN.state(wildcards.unit)


def checkpoint(wildcards):
    """Folder of a base model that was given."""
    return PLAN.base(wildcards.unit).checkpoint


def checkpoint_files(wildcards):
    """Its files, where they are there."""
    return sorted(
        str(path) for path in Path(checkpoint(wildcards)).glob("*") if path.is_file()
    )


def fetch_spec(wildcards):
    """Configuration of `dice fetch`; the rule adds the folder of its state."""
    return canonical(PLAN.fetch_spec(wildcards.unit))


def fetch_state(wildcards):
    """Folder of the download, which goes on there after an interruption."""
    return PLAN.fetch_state(wildcards.unit)


def archived(*parts):
    """A path in the archive of an earlier run."""
    return str(Path(STUDY.archive or "archive", *parts))


def launcher():
    """How a training stage is started: one process for each GPU."""
    if STUDY.gpus > 1:
        return f"torchrun --standalone --nproc-per-node {STUDY.gpus} -m dice.cli"
    return "dice"
