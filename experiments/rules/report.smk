# Tables and what is made of them.
def table_inputs(wildcards):
    """Scores of the table's rows, or manifests of training, or the report of curation."""
    number = int(wildcards.table)
    table = PLAN.registry.tables[number]
    inputs = [PLAN.score(unit) for unit in PLAN.table_units(number)]
    inputs += [PLAN.model(unit) for unit in PLAN.cost_units(number).values() if unit]
    return inputs + [path for path in [PLAN.histogram(number)] if path]


def table_spec(wildcards):
    """Configuration of `dice table`."""
    return canonical(PLAN.table_spec(int(wildcards.table)))


def reported(wildcards):
    """The paper's table."""
    return f"experiments/reported/table{wildcards.table}.csv"


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


def figure_inputs(wildcards):
    """What the figure is drawn from."""
    return PLAN.figure_inputs(int(wildcards.figure))


def figure_spec(wildcards):
    """Configuration of `dice figure`."""
    return canonical(PLAN.figure_spec(int(wildcards.figure)))


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


def explorer_spec():
    """Configuration of `dice explorer`."""
    return {
        "tables": TABLES,
        "units": PLAN.units,
        "results": STUDY.results,
        "seeds": STUDY.seeds,
        "out": PLAN.path("explorer"),
    }


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
    params:
        folder=PLAN.path("paper"),
    shell:
        "sh paper/build.sh {params.folder:q} {output:q} > {log} 2>&1"
