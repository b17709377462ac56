# Answers, verdicts, scores.
if PLAN.makes("generations"):

    rule generate:
        input:
            model=lambda wildcards: PLAN.generate_spec(
                wildcards.unit, int(wildcards.seed)
            )["model"],
            prompts=lambda wildcards: PLAN.prompts_of(wildcards.unit),
        output:
            PLAN.path("generations", "{unit}", "seed{seed}.jsonl"),
        log:
            PLAN.path("logs", "generate-{unit}-{seed}.log"),
        benchmark:
            PLAN.path("benchmarks", "generate-{unit}-{seed}.tsv")
        wildcard_constraints:
            unit=one_of([*PLAN.models, *examined(PLAN)]),
        container:
            image("cuda" if STUDY.gpus else "cpu")
        threads: STUDY.threads
        resources:
            gpu=PLAN.job_gpus,
        params:
            code=code_digest("generate"),
            spec=lambda wildcards: canonical(
                PLAN.generate_spec(wildcards.unit, int(wildcards.seed))
            ),
        message:
            "answer the prompts with {wildcards.unit}, seed {wildcards.seed}"
        shell:
            "dice lease --gpus {resources.gpu} -- dice generate --config {params.spec:q} > {log} 2>&1"

else:

    rule archived_generations:
        input:
            archived("generations", "{unit}", "seed{seed}.jsonl"),
        output:
            PLAN.path("generations", "{unit}", "seed{seed}.jsonl"),
        log:
            PLAN.path("logs", "archived-generations-{unit}-{seed}.log"),
        wildcard_constraints:
            unit=one_of([*PLAN.answering, *examined(PLAN)]),
        container:
            image("cpu")
        message:
            "take the answers of {wildcards.unit}, seed {wildcards.seed}, from the archive"
        shell:
            """
            cp {input:q} {output:q}.part 2>{log}
            test ! -f {input:q}.manifest.json || cp {input:q}.manifest.json {output:q}.manifest.json
            mv {output:q}.part {output:q}
            """


rule supplied:
    input:
        lambda wildcards: PLAN.supplied[wildcards.unit],
    output:
        PLAN.path("generations", "{unit}", "seed{seed}.jsonl"),
    log:
        PLAN.path("logs", "supplied-{unit}-{seed}.log"),
    wildcard_constraints:
        unit=one_of(PLAN.supplied),
    container:
        image("cpu")
    message:
        "copy the supplied candidates of {wildcards.unit}"
    shell:
        "cp {input:q} {output:q}.part 2> {log} && mv {output:q}.part {output:q}"


rule reread:
    input:
        generations=lambda wildcards: PLAN.reread_spec(wildcards.unit, wildcards.seed)[
            "generations"
        ],
        prompts=PLAN.messages,
    output:
        PLAN.path("generations", "{unit}", "seed{seed}.jsonl"),
    log:
        PLAN.path("logs", "reread-{unit}-{seed}.log"),
    wildcard_constraints:
        unit=one_of(PLAN.rereads),
    container:
        image("cpu")
    params:
        code=code_digest("reread"),
        spec=lambda wildcards: canonical(
            PLAN.reread_spec(wildcards.unit, int(wildcards.seed))
        ),
    message:
        "read the answers of {wildcards.unit} as the authors' script does, seed {wildcards.seed}"
    shell:
        "dice reread --config {params.spec:q} > {log} 2>&1"


if PLAN.makes("verdicts"):
    # With several shards, verify writes one file for each, and gather joins them.
    SHARDED = STUDY.shards > 1

    rule verify:
        input:
            candidates=PLAN.path("generations", "{unit}", "seed{seed}.jsonl"),
            problems=lambda wildcards: PLAN.problems_of(asked(wildcards.unit)[1]),
        output:
            (
                temp(PLAN.path("verdicts", "{unit}", "seed{seed}.shard{shard}.jsonl"))
                if SHARDED
                else PLAN.path("verdicts", "{unit}", "seed{seed}.jsonl")
            ),
        log:
            PLAN.path(
                "logs",
                "verify-{unit}-{seed}" + ("-{shard}" if SHARDED else "") + ".log",
            ),
        benchmark:
            PLAN.path(
                "benchmarks",
                "verify-{unit}-{seed}" + ("-{shard}" if SHARDED else "") + ".tsv",
            )
        container:
            image("cuda" if STUDY.gpus else "cpu")
        threads: STUDY.threads
        resources:
            gpu=lambda wildcards: PLAN.verify_gpus(wildcards.unit),
        params:
            code=code_digest("verify"),
            spec=lambda wildcards: canonical(
                PLAN.verify_spec(
                    wildcards.unit,
                    int(wildcards.seed),
                    int(wildcards.shard) if SHARDED else None,
                )
            ),
        message:
            "verify the answers of {wildcards.unit}, seed {wildcards.seed}"
            + (f", shard {{wildcards.shard}} of {STUDY.shards}" if SHARDED else "")
        shell:
            "dice lease --gpus {resources.gpu} -- dice verify --quiet --config {params.spec:q} > {log} 2>&1"

    if SHARDED:

        rule gather:
            input:
                shards=expand(
                    PLAN.path(
                        "verdicts", "{{unit}}", "seed{{seed}}.shard{shard}.jsonl"
                    ),
                    shard=range(STUDY.shards),
                ),
            output:
                PLAN.path("verdicts", "{unit}", "seed{seed}.jsonl"),
            log:
                PLAN.path("logs", "gather-{unit}-{seed}.log"),
            container:
                image("cpu")
            params:
                code=code_digest("gather"),
            message:
                "join the verdicts of {wildcards.unit}, seed {wildcards.seed}"
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
        message:
            "take the verdicts of {wildcards.unit}, seed {wildcards.seed}, from the archive"
        shell:
            """
            cp {input:q} {output:q}.part 2>{log}
            test ! -f {input:q}.manifest.json || cp {input:q}.manifest.json {output:q}.manifest.json
            mv {output:q}.part {output:q}
            """


rule score:
    input:
        verdicts=lambda wildcards: PLAN.verdicts(wildcards.unit),
        problems=lambda wildcards: PLAN.problems_of(asked(wildcards.unit)[1]),
    output:
        PLAN.path("scores", "{unit}.json"),
    log:
        PLAN.path("logs", "score-{unit}.log"),
    container:
        image("cpu")
    params:
        code=code_digest("score"),
        spec=lambda wildcards: canonical(PLAN.score_spec(wildcards.unit)),
    message:
        "count the verdicts of {wildcards.unit}"
    shell:
        "dice score --config {params.spec:q} > {log} 2>&1"
