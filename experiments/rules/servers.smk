# Answers of models behind servers, and recorded ones. What was answered stays below answers/,
# which Snakemake does not know and so does not delete: nothing is asked, and paid, twice.
use rule prompts as messages with:
    output:
        PLAN.messages,
    log:
        PLAN.path("logs", "messages.log"),
    params:
        code=code_digest("prompts"),
        spec=canonical(PLAN.messages_spec()),
    message:
        "write a prompt without chat markup for each problem"


rule recorded:
    input:
        lambda wildcards: present([PLAN.recorded[wildcards.unit]]),
        prompts=PLAN.messages,
    output:
        PLAN.path("generations", "{unit}", "seed{seed}.jsonl"),
    log:
        PLAN.path("logs", "recorded-{unit}-{seed}.log"),
    wildcard_constraints:
        unit=one_of(PLAN.recorded),
    container:
        image("cpu")
    params:
        code=code_digest("ask"),
        spec=lambda wildcards: canonical(
            PLAN.ask_spec(wildcards.unit, int(wildcards.seed))
        ),
    message:
        "take the recorded answers of {wildcards.unit}"
    shell:
        "dice ask --config {params.spec:q} > {log} 2>&1"


if PLAN.makes("generations"):

    rule ask:
        input:
            prompts=PLAN.messages,
        output:
            PLAN.path("generations", "{unit}", "seed{seed}.jsonl"),
        log:
            PLAN.path("logs", "ask-{unit}-{seed}.log"),
        benchmark:
            PLAN.path("benchmarks", "ask-{unit}-{seed}.tsv")
        wildcard_constraints:
            unit=one_of(PLAN.served(local=False)),
        container:
            image("cpu")
        params:
            code=code_digest("ask"),
            spec=lambda wildcards: canonical(
                PLAN.ask_spec(wildcards.unit, int(wildcards.seed))
            ),
        message:
            "ask the server of {wildcards.unit}, seed {wildcards.seed}"
        shell:
            "dice ask --config {params.spec:q} > {log} 2>&1"

    # First of all, so that a run without vLLM does not end hours later.
    rule vllm:
        output:
            PLAN.path("data", "vllm.version"),
        log:
            PLAN.path("logs", "vllm.log"),
        priority: 100
        container:
            image("cuda")
        params:
            vllm=STUDY.vllm,
        message:
            "look for vLLM"
        shell:
            """
            command -v {params.vllm} >/dev/null || {{ echo "'{params.vllm}' is not installed here: install vLLM in an environment of its own (python -m venv vllm && vllm/bin/pip install vllm) and name it (--config vllm=vllm/bin/vllm), or leave its rows out (--config local_rows=false)." | tee {log} >&2; exit 2; }}
            {params.vllm} --version >{output:q} 2>{log}
            """

    rule serve:
        input:
            model=lambda wildcards: PLAN.served_model(wildcards.unit),
            prompts=PLAN.messages,
            vllm=PLAN.path("data", "vllm.version"),
        output:
            PLAN.path("generations", "{unit}", "seed{seed}.jsonl"),
        log:
            PLAN.path("logs", "serve-{unit}-{seed}.log"),
        benchmark:
            PLAN.path("benchmarks", "serve-{unit}-{seed}.tsv")
        wildcard_constraints:
            unit=one_of(PLAN.served(local=True)),
        container:
            image("cuda")
        threads: STUDY.threads
        resources:
            gpu=PLAN.job_gpus,
        params:
            code=code_digest("ask"),
            spec=lambda wildcards: canonical(
                PLAN.ask_spec(wildcards.unit, int(wildcards.seed))
            ),
        message:
            "answer the prompts with {wildcards.unit} in a local vLLM, seed {wildcards.seed}"
        shell:
            "dice lease --gpus {resources.gpu} -- dice ask --config {params.spec:q} > {log} 2>&1"
