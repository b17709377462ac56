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
        test -f {params.path:q} || {{ echo "{params.path}: no such file; supply it (docs/guides/data.md says where it is published)." | tee {log} >&2; exit 2; }}
        cp {params.path:q} {output:q}.part 2>{log}
        mv {output:q}.part {output:q}
        """


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
        """
        dice tokenizer --config {params.spec:q} >{log} 2>&1
        dice publish --out {output:q} {output:q} >>{log} 2>&1
        """
