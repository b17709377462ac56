# Problems, prompts, pairs, tokenizers.
if STUDY.stand_ins is not None:

    rule standins:
        output:
            PLAN.stand_ins,
            hub=directory(PLAN.mirror),
            benchmark=directory(PLAN.suite_source),
        log:
            PLAN.path("logs", "standins.log"),
        container:
            image("cpu")
        params:
            code=code_digest("standins"),
            spec=canonical(PLAN.stand_ins_spec()),
        message:
            "make files of the form of the hub's, KernelBench's and the user's"
        shell:
            "dice standins --config {params.spec:q} > {log} 2>&1"


rule mini:
    input:
        benchmark=sorted(
            str(path) for path in Path("experiments/benchmarks/mini").rglob("*.*")
        ),
    output:
        directory(PLAN.benchmark),
    log:
        PLAN.path("logs", "mini.log"),
    container:
        image("cpu")
    params:
        code=code_digest("mini"),
        size="gpu" if PLAN.mini_version.endswith("gpu") else "cpu",
    message:
        "write the mini benchmark, size {params.size}"
    shell:
        "dice mini --size {params.size} --out {output} > {log} 2>&1"


rule problems:
    input:
        source=[source for source in PLAN.problem_files() if PLAN.made(source)],
    output:
        PLAN.problems,
    log:
        PLAN.path("logs", "problems.log"),
    container:
        image("cpu")
    params:
        code=code_digest("problems"),
        spec=canonical(PLAN.problems_spec()),
    message:
        "load the problems of the benchmark"
    shell:
        "dice problems --config {params.spec:q} > {log} 2>&1"


use rule problems as exam_problems with:
    input:
        lambda wildcards: present(PLAN.problem_files(wildcards.exam)),
    output:
        PLAN.path("data", "exams", "{exam}", "problems.jsonl"),
    log:
        PLAN.path("logs", "problems-{exam}.log"),
    wildcard_constraints:
        exam=one_of(STUDY.exams),
    params:
        code=code_digest("problems"),
        spec=lambda wildcards: canonical(PLAN.problems_spec(wildcards.exam)),
    message:
        "load the problems of the exam {wildcards.exam}"


# Only what makes KernelBench's prompts, at the commit of the paper's version. No digest of code, as for `fetch`.
rule kernelbench:
    output:
        directory(PLAN.path("data", "kernelbench")),
    log:
        PLAN.path("logs", "kernelbench.log"),
    retries: 3
    container:
        image("cpu")
    params:
        repository="https://github.com/ScalingIntelligence/KernelBench",
        commit="88df56b931a0ecafc3ac3b321275addaa078407c",
    message:
        "fetch the text of KernelBench's prompt"
    shell:
        """
        rm -rf {output:q}.git
        git init --quiet --bare {output:q}.git >{log} 2>&1
        git -C {output:q}.git fetch --quiet --depth 1 {params.repository} {params.commit} >>{log} 2>&1
        mkdir -p {output:q}
        git -C {output:q}.git archive FETCH_HEAD src 2>>{log} | tar -x -C {output:q}
        rm -rf {output:q}.git
        """


rule prompts:
    input:
        problems=PLAN.problems,
        kernelbench=present([PLAN.kernelbench]) if PLAN.kernelbench else [],
    output:
        PLAN.prompts,
    log:
        PLAN.path("logs", "prompts.log"),
    container:
        image("cpu")
    params:
        code=code_digest("prompts"),
        spec=canonical(PLAN.prompts_spec()),
    message:
        "write a prompt for each problem"
    shell:
        "dice prompts --config {params.spec:q} > {log} 2>&1"


use rule prompts as exam_prompts with:
    input:
        problems=PLAN.path("data", "exams", "{exam}", "problems.jsonl"),
        kernelbench=present([PLAN.kernelbench]) if PLAN.kernelbench else [],
    output:
        PLAN.path("data", "exams", "{exam}", "prompts.jsonl"),
    log:
        PLAN.path("logs", "prompts-{exam}.log"),
    wildcard_constraints:
        exam=one_of(STUDY.exams),
    params:
        code=code_digest("prompts"),
        spec=lambda wildcards: canonical(PLAN.prompts_spec(wildcards.exam)),
    message:
        "write a prompt for each problem of the exam {wildcards.exam}"


rule synth:
    input:
        lambda wildcards: PLAN.kept_out(wildcards.dataset),
        problems=PLAN.problems if STUDY.suite.source != "mini" else [],
    output:
        pairs=PLAN.path("data", "{dataset}.jsonl"),
        leaks=PLAN.path("data", "{dataset}.jsonl.leaks.json"),
    log:
        PLAN.path("logs", "synth-{dataset}.log"),
    benchmark:
        PLAN.path("benchmarks", "synth-{dataset}.tsv")
    wildcard_constraints:
        dataset=one_of(PLAN.datasets("synth")),
    priority: 1
    container:
        image("cpu")
    params:
        code=code_digest("synth"),
        spec=lambda wildcards: canonical(PLAN.synth_spec(wildcards.dataset)),
    message:
        "generate synthetic pairs: {wildcards.dataset}"
    shell:
        "dice synth --quiet --config {params.spec:q} > {log} 2>&1"


rule supplied_data:
    input:
        lambda wildcards: present([PLAN.file(STUDY.datasets[wildcards.dataset].path)]),
        lambda wildcards: PLAN.kept_out(wildcards.dataset),
        problems=PLAN.problems,
    output:
        pairs=PLAN.path("data", "{dataset}.jsonl"),
        leaks=PLAN.path("data", "{dataset}.jsonl.leaks.json"),
    log:
        PLAN.path("logs", "supplied-{dataset}.log"),
    wildcard_constraints:
        dataset=one_of(PLAN.datasets("file")),
    container:
        image("cpu")
    params:
        code=code_digest("leaks"),
        path=lambda wildcards: PLAN.file(STUDY.datasets[wildcards.dataset].path),
        spec=lambda wildcards: canonical(leaks_spec(PLAN, wildcards.dataset)),
    message:
        "take the supplied programs that are no exam problem: {wildcards.dataset}"
    shell:
        """
        test -f {params.path:q} || {{ echo "{params.path}: no such file; supply it (docs/guides/data.md says where it is published)." | tee {log} >&2; exit 2; }}
        dice leaks --quiet --config {params.spec:q} >{log} 2>&1
        """


rule curate:
    input:
        lambda wildcards: present(PLAN.curate_inputs(wildcards.dataset)),
    output:
        pairs=PLAN.path("data", "{dataset}", "pairs.jsonl"),
        report=PLAN.path("data", "{dataset}", "report.json"),
        leaks=PLAN.path("data", "{dataset}", "pairs.jsonl.leaks.json"),
    log:
        PLAN.path("logs", "curate-{dataset}.log"),
    benchmark:
        PLAN.path("benchmarks", "curate-{dataset}.tsv")
    wildcard_constraints:
        dataset=one_of(PLAN.datasets("curate")),
    container:
        image("cuda" if STUDY.gpus else "cpu")
    resources:
        gpu=PLAN.job_gpus,
    params:
        code=code_digest("curate"),
        spec=lambda wildcards: canonical(PLAN.curate_spec(wildcards.dataset)),
        out=PLAN.path("data", "{dataset}"),
        state=lambda wildcards: PLAN.curate_state(wildcards.dataset),
    message:
        "verify and select pairs: {wildcards.dataset}"
    shell:
        """
        work={params.state}-{params.code}-$(dice fingerprint {input:q})
        dice lease --gpus {resources.gpu} -- dice curate --quiet --config {params.spec:q} --out {params.out:q} --work "$work" >{log} 2>&1
        """


rule infill:
    input:
        pairs=lambda wildcards: PLAN.pairs(wildcards.dataset),
    output:
        PLAN.path("data", "{dataset}.infilling.jsonl"),
    log:
        PLAN.path("logs", "infill-{dataset}.log"),
    container:
        image("cpu")
    params:
        code=code_digest("infill"),
        spec=lambda wildcards: canonical(PLAN.infill_spec(wildcards.dataset)),
    message:
        "split pairs into prefix, middle and suffix: {wildcards.dataset}"
    shell:
        "dice infill --config {params.spec:q} > {log} 2>&1"


rule tokenizer:
    input:
        pairs=lambda wildcards: PLAN.dataset(wildcards.dataset),
    output:
        directory(PLAN.path("data", "{dataset}.tokenizer")),
    log:
        PLAN.path("logs", "tokenizer-{dataset}.log"),
    container:
        image("cpu")
    params:
        code=code_digest("tokenizer"),
        spec=lambda wildcards: canonical(PLAN.tokenizer_spec(wildcards.dataset)),
    message:
        "train a tokenizer on {wildcards.dataset}"
    shell:
        """
        dice tokenizer --config {params.spec:q} >{log} 2>&1
        dice publish --out {output:q} {output:q} >>{log} 2>&1
        """
