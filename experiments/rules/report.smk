# Tables and what is made of them.
rule table:
    input:
        lambda wildcards: table_inputs(PLAN, int(wildcards.table)),
        reported="experiments/reported/table{table}.csv",
    output:
        csv=report(
            PLAN.path("table{table}.csv"),
            category="Tables",
            labels={"table": "{table}"},
        ),
        tex=PLAN.path("table{table}.tex"),
    log:
        PLAN.path("logs", "table{table}.log"),
    container:
        image("cpu")
    params:
        code=code_digest("table"),
        spec=lambda wildcards: canonical(table_spec(PLAN, int(wildcards.table))),
    message:
        "write table {wildcards.table}"
    shell:
        "dice table --config {params.spec:q} > {log} 2>&1"


rule exams:
    input:
        exams_inputs(PLAN),
    output:
        report(PLAN.path("exams.csv"), category="Tables"),
    log:
        PLAN.path("logs", "exams.log"),
    container:
        image("cpu")
    params:
        code=code_digest("exams"),
        spec=canonical(exams_spec(PLAN)),
    message:
        "write what each model gets in each benchmark"
    shell:
        "dice exams --config {params.spec:q} > {log} 2>&1"


use rule exams as table_exams with:
    input:
        lambda wildcards: exams_inputs(PLAN, int(wildcards.table)),
    output:
        report(exams_path(PLAN, "{table}"), category="Tables"),
    log:
        PLAN.path("logs", "exams{table}.log"),
    params:
        code=code_digest("exams"),
        spec=lambda wildcards: canonical(exams_spec(PLAN, int(wildcards.table))),
    message:
        "write what each model of table {wildcards.table} gets in each benchmark"


rule strata:
    input:
        lambda wildcards: strata_inputs(PLAN, int(wildcards.table)),
    output:
        csv=report(strata_path(PLAN, "{table}"), category="Tables"),
        problems=PLAN.path("table{table}.strata.problems.csv"),
    log:
        PLAN.path("logs", "strata{table}.log"),
    container:
        image("cpu")
    params:
        code=code_digest("strata"),
        spec=lambda wildcards: canonical(strata_spec(PLAN, int(wildcards.table))),
    message:
        "count the rows of table {wildcards.table} by stratum"
    shell:
        "dice strata --config {params.spec:q} > {log} 2>&1"


rule figure:
    input:
        lambda wildcards: figure_inputs(PLAN, int(wildcards.figure)),
    output:
        csv=PLAN.path("figure{figure}.csv"),
        pdf=PLAN.path("figure{figure}.pdf"),
        png=report(
            PLAN.path("figure{figure}.png"),
            category="Figures",
            labels={"figure": "{figure}"},
        ),
    log:
        PLAN.path("logs", "figure{figure}.log"),
    container:
        image("cpu")
    params:
        code=code_digest("figure"),
        spec=lambda wildcards: canonical(figure_spec(PLAN, int(wildcards.figure))),
    message:
        "draw figure {wildcards.figure}"
    shell:
        "dice figure --config {params.spec:q} > {log} 2>&1"


rule check:
    input:
        check_inputs(PLAN),
    output:
        csv=report(PLAN.path("check.csv"), category="Check"),
        pairs=report(PLAN.path("pairs.csv"), category="Check"),
        summary=PLAN.path("check.md"),
    log:
        PLAN.path("logs", "check.log"),
    container:
        image("cpu")
    params:
        code=code_digest("check"),
        spec=canonical(check_spec(PLAN)),
    message:
        "compare what was measured with the paper"
    shell:
        "dice check --config {params.spec:q} > {log} 2>&1"


rule claims:
    input:
        claims_inputs(PLAN),
    output:
        csv=report(PLAN.path("claims.csv"), category="Check"),
        pdf=PLAN.path("claims.pdf"),
        png=report(PLAN.path("claims.png"), category="Check"),
    log:
        PLAN.path("logs", "claims.log"),
    container:
        image("cpu")
    params:
        code=code_digest("claims"),
        spec=canonical(claims_spec(PLAN)),
    message:
        "test the paper's claims"
    shell:
        "dice claims --config {params.spec:q} > {log} 2>&1"


rule explorer:
    input:
        tables=PLAN.tables,
    output:
        PLAN.path("explorer", "index.html"),
    log:
        PLAN.path("logs", "explorer.log"),
    container:
        image("cpu")
    params:
        code=code_digest("explorer"),
        spec=canonical(explorer_spec(PLAN)),
    message:
        "write the pages from cells to kernels"
    shell:
        "dice explorer --config {params.spec:q} > {log} 2>&1"


rule tex:
    input:
        tables=PLAN.tables,
        figures=PLAN.figures,
    output:
        numbers=PLAN.path("paper", "numbers.tex"),
        inputs=PLAN.path("paper", "generated.tex"),
    log:
        PLAN.path("logs", "tex.log"),
    container:
        image("cpu")
    params:
        code=code_digest("tex"),
    message:
        "write the numbers of the paper's text"
    shell:
        "dice tex --tables {input.tables:q} --figures {input.figures:q} --out {output.numbers:q} > {log} 2>&1"


rule paper:
    input:
        numbers=PLAN.path("paper", "numbers.tex"),
        inputs=PLAN.path("paper", "generated.tex"),
        text=["paper/main.tex", "paper/dice.sty", "paper/build.sh"],
    output:
        PLAN.path("paper", "dice.pdf"),
    log:
        PLAN.path("logs", "paper.log"),
    container:
        image("tex")
    message:
        "typeset the paper"
    shell:
        "sh paper/build.sh {input.numbers:q} {output:q} > {log} 2>&1"
