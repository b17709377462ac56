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
        dice publish --out {output:q} {params.checkpoint:q} >{log} 2>&1
        """


# No code among its inputs: the files of a commit are the same whatever fetched them.
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
        spec=fetch_spec,
        state=fetch_state,
    shell:
        """
        dice fetch --config {params.spec:q} --out {params.state:q} >{log} 2>&1
        mv {params.state:q} {output:q}
        """


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
    threads: STUDY.threads
    resources:
        gpu=STUDY.gpus,
    params:
        spec=training_spec,
        launcher=launcher(),
        state=state,
    shell:
        """
        state={params.state}-$(dice fingerprint {input:q})
        dice lease --gpus {resources.gpu} -- {params.launcher} sft --config {params.spec:q} --out "$state" >{log} 2>&1
        dice publish --out {output:q} "$state/model" "$state/history.jsonl" "$state/model.manifest.json" >>{log} 2>&1
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
        launcher=launcher(),
        state=state,
    shell:
        """
        state={params.state}-$(dice fingerprint {input:q})
        dice lease --gpus {resources.gpu} -- {params.launcher} rl --config {params.spec:q} --out "$state" >{log} 2>&1
        dice publish --out {output:q} "$state/model" "$state/history.jsonl" "$state/model.manifest.json" >>{log} 2>&1
        """


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
        "dice publish --out {output:q} {input:q} > {log} 2>&1"
