# Answers, verdicts, scores.
SOLUTIONS = [f"supplied-{name}" for name in STUDY.supplied]
SHARDS = [str(index) for index in range(STUDY.shards)]


def generate_spec(wildcards):
    """Configuration of `dice generate`."""
    spec = PLAN.generate_spec(wildcards.unit, int(wildcards.seed))
    out = PLAN.path("generations", wildcards.unit, f"seed{wildcards.seed}.jsonl")
    return canonical(merged(spec, {"out": out}))


def supplied_candidates(wildcards):
    """The user's file of candidates."""
    return STUDY.supplied[wildcards.unit.removeprefix("supplied-")]


def shard_spec(wildcards):
    """Configuration of `dice shard`."""
    folder = PLAN.path("generations", wildcards.unit)
    return canonical(
        {
            "rows": f"{folder}/seed{wildcards.seed}.jsonl",
            "out": f"{folder}/seed{wildcards.seed}.shard{wildcards.shard}.jsonl",
            "index": int(wildcards.shard),
            "of": STUDY.shards,
        }
    )


def verify_spec(wildcards):
    """Configuration of `dice verify` for a shard."""
    name = f"seed{wildcards.seed}.shard{wildcards.shard}.jsonl"
    spec = PLAN.verify_spec(PLAN.path("generations", wildcards.unit, name))
    return canonical(merged(spec, {"out": PLAN.path("verdicts", wildcards.unit, name)}))


def seeds_of(unit):
    """Seeds of a unit: a user's file has one."""
    return [0] if unit.startswith("supplied-") else list(STUDY.seeds)


def verdict_files(wildcards):
    """Verdicts of all seeds."""
    return [
        PLAN.path("verdicts", wildcards.unit, f"seed{seed}.jsonl")
        for seed in seeds_of(wildcards.unit)
    ]


def score_spec(wildcards):
    """Configuration of `dice score`."""
    return canonical(
        {
            "verdicts": verdict_files(wildcards),
            "problems": PLAN.path("data", "problems.jsonl"),
            "out": PLAN.score(wildcards.unit),
        }
    )
