# Problems, prompts, pairs.
SYNTH = [name for name, data in STUDY.datasets.items() if data.stage == "synth"]
CURATED = [name for name, data in STUDY.datasets.items() if data.stage == "curate"]
SUPPLIED = [name for name, data in STUDY.datasets.items() if data.stage == "file"]


def problems_spec():
    """Configuration of `dice problems`; the mini benchmark is first written at its size."""
    suite = STUDY.suite
    source = PLAN.path("data", "benchmark") if suite.source == "mini" else suite.source
    return {
        "source": source,
        "version": suite.version,
        "levels": suite.levels,
        "out": PLAN.path("data", "problems.jsonl"),
    }


rule mini:
    input:
        code=code("mini"),
        benchmark=sorted(
            str(path) for path in Path("experiments/benchmarks/mini").rglob("*.*")
        ),
    output:
        directory(PLAN.path("data", "benchmark")),
    log:
        PLAN.path("logs", "mini.log"),
    container:
        image("cpu")
    params:
        size="gpu" if STUDY.suite.version.endswith("gpu") else "cpu",
    shell:
        "dice mini --size {params.size} --out {output} > {log} 2>&1"


rule problems:
    input:
        code=code("problems"),
        source=PLAN.path("data", "benchmark") if STUDY.suite.source == "mini" else [],
    output:
        PLAN.path("data", "problems.jsonl"),
    log:
        PLAN.path("logs", "problems.log"),
    container:
        image("cpu")
    params:
        spec=canonical(problems_spec()),
    shell:
        "dice problems --config {params.spec:q} > {log} 2>&1"


rule prompts:
    input:
        code=code("prompts"),
        problems=PLAN.path("data", "problems.jsonl"),
    output:
        PLAN.path("data", "prompts.jsonl"),
    log:
        PLAN.path("logs", "prompts.log"),
    container:
        image("cpu")
    params:
        spec=canonical(
            {
                "tasks": PLAN.path("data", "problems.jsonl"),
                "out": PLAN.path("data", "prompts.jsonl"),
                "prompt": STUDY.prompt,
            }
        ),
    shell:
        "dice prompts --config {params.spec:q} > {log} 2>&1"


def synth_spec(wildcards):
    """Configuration of `dice synth`."""
    return canonical(
        merged(
            STUDY.datasets[wildcards.dataset].spec,
            {"out": PLAN.pairs(wildcards.dataset)},
        )
    )


rule synth:
    input:
        code=code("synth"),
    output:
        PLAN.path("data", "{dataset}.jsonl"),
    log:
        PLAN.path("logs", "synth-{dataset}.log"),
    wildcard_constraints:
        dataset=one_of(SYNTH),
    container:
        image("cpu")
    params:
        spec=synth_spec,
    shell:
        "dice synth --quiet --config {params.spec:q} > {log} 2>&1"


def supplied_data(wildcards):
    """The user's file, where it is there: a dry run plans without it."""
    return present([STUDY.datasets[wildcards.dataset].path])


def supplied_path(wildcards):
    """Where the user's file is expected."""
    return STUDY.datasets[wildcards.dataset].path


rule supplied_data:
    input:
        supplied_data,
    output:
        PLAN.path("data", "{dataset}.jsonl"),
    log:
        PLAN.path("logs", "supplied-{dataset}.log"),
    wildcard_constraints:
        dataset=one_of(SUPPLIED),
    container:
        image("cpu")
    params:
        path=supplied_path,
    shell:
        """
        test -f {params.path:q} || {{ echo "{params.path}: no such file; supply it (docs/data.md says where it is published)." | tee {log} >&2; exit 2; }}
        cp {params.path:q} {output:q} 2>{log}
        """


def curate_inputs(wildcards):
    """Candidates of every source: a data set of the study, or a user's file."""
    sources = STUDY.datasets[wildcards.dataset].sources
    return [
        PLAN.pairs(place) for place in sources.values() if place in STUDY.datasets
    ] + present(place for place in sources.values() if place not in STUDY.datasets)


def curate_spec(wildcards):
    """Configuration of `dice curate`, without `out`."""
    dataset = STUDY.datasets[wildcards.dataset]
    sources = {
        name: [PLAN.pairs(place) if place in STUDY.datasets else place]
        for name, place in dataset.sources.items()
    }
    return canonical(
        merged({"backend": STUDY.backend, "sources": sources}, dataset.spec)
    )


rule curate:
    input:
        curate_inputs,
        code=code("curate"),
    output:
        pairs=PLAN.path("data", "{dataset}", "pairs.jsonl"),
        report=PLAN.path("data", "{dataset}", "report.json"),
    log:
        PLAN.path("logs", "curate-{dataset}.log"),
    wildcard_constraints:
        dataset=one_of(CURATED),
    container:
        image("cuda" if STUDY.gpus else "cpu")
    resources:
        gpu=PLAN.job_gpus,
    params:
        spec=curate_spec,
        out=PLAN.path("data", "{dataset}"),
    shell:
        "dice lease --gpus {resources.gpu} -- dice curate --quiet --config {params.spec:q} --out {params.out:q} > {log} 2>&1"


def infill_spec(wildcards):
    """Configuration of `dice infill`."""
    return canonical(
        {
            "pairs": PLAN.pairs(wildcards.dataset),
            "out": PLAN.path("data", f"{wildcards.dataset}.infilling.jsonl"),
        }
    )


def infill_input(wildcards):
    """Pairs to split."""
    return PLAN.pairs(wildcards.dataset)


rule infill:
    input:
        pairs=infill_input,
        code=code("infill"),
    output:
        PLAN.path("data", "{dataset}.infilling.jsonl"),
    log:
        PLAN.path("logs", "infill-{dataset}.log"),
    container:
        image("cpu")
    params:
        spec=infill_spec,
    shell:
        "dice infill --config {params.spec:q} > {log} 2>&1"


def tokenizer_spec(wildcards):
    """Configuration of `dice tokenizer`."""
    return canonical(
        merged(
            STUDY.tokenizer,
            {
                "pairs": [PLAN.dataset(wildcards.dataset)],
                "out": PLAN.tokenizer(wildcards.dataset),
            },
        )
    )


def tokenizer_input(wildcards):
    """Pairs to train the tokenizer on."""
    return PLAN.dataset(wildcards.dataset)


rule tokenizer:
    input:
        pairs=tokenizer_input,
        code=code("tokenizer"),
    output:
        directory(PLAN.path("data", "{dataset}.tokenizer")),
    log:
        PLAN.path("logs", "tokenizer-{dataset}.log"),
    container:
        image("cpu")
    params:
        spec=tokenizer_spec,
    shell:
        "dice tokenizer --config {params.spec:q} > {log} 2>&1"
