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
