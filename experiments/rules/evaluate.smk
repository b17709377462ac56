# Answers, verdicts, scores.
SOLUTIONS = [f"supplied-{name}" for name in STUDY.supplied]
SHARDS = [str(index) for index in range(STUDY.shards)]


def generate_spec(wildcards):
    """Configuration of `dice generate`."""
    spec = PLAN.generate_spec(wildcards.unit, int(wildcards.seed))
    out = PLAN.path("generations", wildcards.unit, f"seed{wildcards.seed}.jsonl")
    return canonical(merged(spec, {"out": out}))


if evidence_from("checkpoints"):

    rule generate:
        input:
            model=PLAN.path("models", "{unit}"),
            prompts=PLAN.path("data", "prompts.jsonl"),
            code=code("generate"),
        output:
            PLAN.path("generations", "{unit}", "seed{seed}.jsonl"),
        log:
            PLAN.path("logs", "generate-{unit}-{seed}.log"),
        wildcard_constraints:
            unit=one_of(BASES + DERIVED + RELEASED),
        container:
            image("cuda" if STUDY.gpus else "cpu")
        threads: 2
        resources:
            gpu=PLAN.job_gpus,
        params:
            spec=generate_spec,
        shell:
            "dice lease --gpus {resources.gpu} -- dice generate --config {params.spec:q} > {log} 2>&1"

elif evidence_from("generations"):

    rule archived_generations:
        input:
            archived("generations", "{unit}", "seed{seed}.jsonl"),
        output:
            PLAN.path("generations", "{unit}", "seed{seed}.jsonl"),
        log:
            PLAN.path("logs", "archived-generations-{unit}-{seed}.log"),
        wildcard_constraints:
            unit=one_of(BASES + DERIVED + RELEASED),
        container:
            image("cpu")
        shell:
            "cp {input:q} {output:q} 2> {log}"


def supplied_candidates(wildcards):
    """The user's file of candidates."""
    return STUDY.supplied[wildcards.unit.removeprefix("supplied-")]


rule supplied:
    input:
        supplied_candidates,
    output:
        PLAN.path("generations", "{unit}", "seed{seed}.jsonl"),
    log:
        PLAN.path("logs", "supplied-{unit}-{seed}.log"),
    wildcard_constraints:
        unit=one_of(SOLUTIONS),
    container:
        image("cpu")
    shell:
        "cp {input:q} {output:q} 2> {log}"


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


if STUDY.start_from != "verdicts":

    rule shard:
        input:
            rows=PLAN.path("generations", "{unit}", "seed{seed}.jsonl"),
            code=code("shard"),
        output:
            temp(PLAN.path("generations", "{unit}", "seed{seed}.shard{shard}.jsonl")),
        log:
            PLAN.path("logs", "shard-{unit}-{seed}-{shard}.log"),
        container:
            image("cpu")
        params:
            spec=shard_spec,
        shell:
            "dice shard --config {params.spec:q} > {log} 2>&1"

    rule verify:
        input:
            candidates=PLAN.path(
                "generations", "{unit}", "seed{seed}.shard{shard}.jsonl"
            ),
            problems=PLAN.path("data", "problems.jsonl"),
            code=code("verify"),
        output:
            temp(PLAN.path("verdicts", "{unit}", "seed{seed}.shard{shard}.jsonl")),
        log:
            PLAN.path("logs", "verify-{unit}-{seed}-{shard}.log"),
        container:
            image("cuda" if STUDY.gpus else "cpu")
        threads: 2
        resources:
            gpu=PLAN.job_gpus,
        params:
            spec=verify_spec,
        shell:
            "dice lease --gpus {resources.gpu} -- dice verify --quiet --config {params.spec:q} > {log} 2>&1"

    rule gather:
        input:
            shards=expand(
                PLAN.path("verdicts", "{{unit}}", "seed{{seed}}.shard{shard}.jsonl"),
                shard=SHARDS,
            ),
            code=code("gather"),
        output:
            PLAN.path("verdicts", "{unit}", "seed{seed}.jsonl"),
        log:
            PLAN.path("logs", "gather-{unit}-{seed}.log"),
        container:
            image("cpu")
        shell:
            "dice gather --shards {input.shards:q} --out {output:q} > {log} 2>&1"

else:

    rule archived_verdicts:
        input:
            archived("verdicts", "{unit}", "seed{seed}.jsonl"),
        output:
            PLAN.path("verdicts", "{unit}", "seed{seed}.jsonl"),
        log:
            PLAN.path("logs", "archived-verdicts-{unit}-{seed}.log"),
        container:
            image("cpu")
        shell:
            "cp {input:q} {output:q} 2> {log}"


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


rule score:
    input:
        verdicts=verdict_files,
        problems=PLAN.path("data", "problems.jsonl"),
        code=code("score"),
    output:
        PLAN.path("scores", "{unit}.json"),
    log:
        PLAN.path("logs", "score-{unit}.log"),
    container:
        image("cpu")
    params:
        spec=score_spec,
    shell:
        "dice score --config {params.spec:q} > {log} 2>&1"
