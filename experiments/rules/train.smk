# Models. A training run works in an undeclared folder below state/, named by what it does, and resumes there; what it made
# is copied to models/ when it has ended. Exactly one rule makes each unit's model (dice.study.units).
# Data and training go first: they are the longest chain, and answers and verdicts fill the gaps.
rule base:
    input:
        lambda wildcards: sorted(
            str(path)
            for path in Path(PLAN.base(wildcards.unit).checkpoint).glob("*")
            if path.is_file()
        ),
    output:
        directory(PLAN.path("models", "{unit}")),
    log:
        PLAN.path("logs", "base-{unit}.log"),
    wildcard_constraints:
        unit=one_of(PLAN.models_by("base")),
    container:
        image("cpu")
    params:
        checkpoint=lambda wildcards: PLAN.base(wildcards.unit).checkpoint,
    message:
        "copy the base checkpoint to {wildcards.unit}"
    shell:
        """
        test -f {params.checkpoint:q}/config.json || {{ echo "{params.checkpoint}: no base checkpoint there; train one with --config from_scratch=true." | tee {log} >&2; exit 2; }}
        dice publish --out {output:q} {params.checkpoint:q} >{log} 2>&1
        """


# No digest of code: the files of a commit are the same whatever fetched them.
rule fetch:
    input:
        PLAN.mirror or [],
    output:
        directory(PLAN.path("models", "{unit}")),
    log:
        PLAN.path("logs", "fetch-{unit}.log"),
    benchmark:
        PLAN.path("benchmarks", "fetch-{unit}.tsv")
    wildcard_constraints:
        unit=one_of(PLAN.models_by("fetch")),
    retries: 3
    container:
        image("cuda")
    params:
        spec=lambda wildcards: canonical(PLAN.fetch_spec(wildcards.unit)),
        state=lambda wildcards: PLAN.fetch_state(wildcards.unit),
    message:
        "fetch the checkpoint of {wildcards.unit}"
    shell:
        """
        dice fetch --config {params.spec:q} --out {params.state:q} >{log} 2>&1
        mv {params.state:q} {output:q}
        """


PROCESSES = STUDY.processes or STUDY.gpus
LAUNCHER = (
    f"torchrun --standalone --nproc-per-node {PROCESSES} -m dice.cli"
    if PROCESSES > 1
    else "dice"
)


rule sft:
    input:
        lambda wildcards: PLAN.training_inputs(wildcards.unit),
    output:
        directory(PLAN.path("models", "{unit}")),
    log:
        PLAN.path("logs", "sft-{unit}.log"),
    benchmark:
        PLAN.path("benchmarks", "sft-{unit}.tsv")
    wildcard_constraints:
        unit=one_of(PLAN.models_by("sft")),
    priority: 1
    container:
        image("cuda" if STUDY.gpus else "cpu")
    threads: STUDY.threads
    resources:
        gpu=STUDY.gpus,
    params:
        code=code_digest("sft"),
        spec=lambda wildcards: canonical(PLAN.training_spec(wildcards.unit)),
        launcher=LAUNCHER,
        state=lambda wildcards: PLAN.state(wildcards.unit),
    message:
        "train {wildcards.unit} on pairs"
    shell:
        """
        state={params.state}-{params.code}-$(dice fingerprint {input:q})
        dice lease --gpus {resources.gpu} -- {params.launcher} sft --config {params.spec:q} --out "$state" >{log} 2>&1
        dice publish --out {output:q} "$state/model" "$state/history.jsonl" "$state/model.manifest.json" >>{log} 2>&1
        """


rule rl:
    input:
        lambda wildcards: PLAN.training_inputs(wildcards.unit),
    output:
        directory(PLAN.path("models", "{unit}")),
    log:
        PLAN.path("logs", "rl-{unit}.log"),
    benchmark:
        PLAN.path("benchmarks", "rl-{unit}.tsv")
    wildcard_constraints:
        unit=one_of(PLAN.models_by("rl")),
    priority: 1
    container:
        image("cuda" if STUDY.gpus else "cpu")
    threads: STUDY.threads
    resources:
        gpu=STUDY.gpus,
    params:
        code=code_digest("rl"),
        spec=lambda wildcards: canonical(PLAN.training_spec(wildcards.unit)),
        launcher=LAUNCHER,
        state=lambda wildcards: PLAN.state(wildcards.unit),
    message:
        "train {wildcards.unit} on the rewards of verified kernels"
    shell:
        """
        state={params.state}-{params.code}-$(dice fingerprint {input:q})
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
        unit=one_of(PLAN.models_by("archived_model")),
    container:
        image("cpu")
    message:
        "take the model {wildcards.unit} from the archive"
    shell:
        "dice publish --out {output:q} {input:q} > {log} 2>&1"
