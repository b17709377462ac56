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


def synth_spec(wildcards):
    """Configuration of `dice synth`."""
    return canonical(
        merged(
            STUDY.datasets[wildcards.dataset].spec,
            {"out": PLAN.pairs(wildcards.dataset)},
        )
    )


def supplied_data(wildcards):
    """The user's file, where it is there: a dry run plans without it."""
    return present([STUDY.datasets[wildcards.dataset].path])


def supplied_path(wildcards):
    """Where the user's file is expected."""
    return STUDY.datasets[wildcards.dataset].path


def curate_inputs(wildcards):
    """The benchmark, and candidates of every source: a data set of the study, or a user's file that is there."""
    places = [
        source["path"] for source in PLAN.curate_spec(wildcards.dataset)["sources"]
    ]
    made = [path for path in places if path.startswith(STUDY.results + "/")]
    supplied = present(path for path in places if path not in made)
    return [PLAN.path("data", "problems.jsonl"), *made, *supplied]


def curate_spec(wildcards):
    """Configuration of `dice curate`, without `out`."""
    return canonical(PLAN.curate_spec(wildcards.dataset))


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
