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
        threads: STUDY.threads
        resources:
            gpu=PLAN.job_gpus,
        params:
            spec=generate_spec,
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
            unit=one_of(BASES + DERIVED + RELEASED),
        container:
            image("cpu")
        shell:
            """
            cp {input:q} {output:q}.part 2>{log}
            test ! -f {input:q}.manifest.json || cp {input:q}.manifest.json {output:q}.manifest.json
            mv {output:q}.part {output:q}
            """


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
        "cp {input:q} {output:q}.part 2> {log} && mv {output:q}.part {output:q}"


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
        threads: STUDY.threads
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
            """
            cp {input:q} {output:q}.part 2>{log}
            test ! -f {input:q}.manifest.json || cp {input:q}.manifest.json {output:q}.manifest.json
            mv {output:q}.part {output:q}
            """


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
