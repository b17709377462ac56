rule table:
    input:
        table_inputs,
        reported=reported,
        code=code("table"),
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
        spec=table_spec,
    shell:
        "dice table --config {params.spec:q} > {log} 2>&1"


rule figure:
    input:
        figure_inputs,
        code=code("figure"),
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
        spec=figure_spec,
    shell:
        "dice figure --config {params.spec:q} > {log} 2>&1"


rule check:
    input:
        tables=TABLES,
        code=code("check"),
    output:
        csv=report(PLAN.path("check.csv"), category="Check"),
        summary=PLAN.path("check.md"),
    log:
        PLAN.path("logs", "check.log"),
    container:
        image("cpu")
    shell:
        "dice check --tables {input.tables:q} --out {output.csv:q} > {log} 2>&1"


rule explorer:
    input:
        tables=TABLES,
        code=code("explorer"),
    output:
        PLAN.path("explorer", "index.html"),
    log:
        PLAN.path("logs", "explorer.log"),
    container:
        image("cpu")
    params:
        spec=canonical(explorer_spec()),
    shell:
        "dice explorer --config {params.spec:q} > {log} 2>&1"


rule tex:
    input:
        tables=TABLES,
        figures=FIGURES,
        code=code("tex"),
    output:
        numbers=PLAN.path("paper", "numbers.tex"),
        inputs=PLAN.path("paper", "generated.tex"),
    log:
        PLAN.path("logs", "tex.log"),
    container:
        image("cpu")
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
    shell:
        "sh paper/build.sh {input.numbers:q} {output:q} > {log} 2>&1"
