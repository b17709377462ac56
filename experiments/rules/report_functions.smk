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


def figure_inputs(wildcards):
    """What the figure is drawn from."""
    return PLAN.figure_inputs(int(wildcards.figure))


def figure_spec(wildcards):
    """Configuration of `dice figure`."""
    return canonical(PLAN.figure_spec(int(wildcards.figure)))


def explorer_spec():
    """Configuration of `dice explorer`."""
    return {
        "tables": TABLES,
        "units": PLAN.units,
        "results": STUDY.results,
        "seeds": STUDY.seeds,
        "out": PLAN.path("explorer"),
    }
