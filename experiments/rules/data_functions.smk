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
