"""models.yaml, hub.yaml, tables.yaml, figures.yaml and claims.yaml of experiments/: the paper's models, tables and claims."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from dice.config import parse_config, read_yaml, stage_config
from dice.errors import DiceError
from dice.model.families import ModelType
from dice.study.config import Settings

FigureKind = Literal["overview", "decoding_order", "pipeline", "components", "sft_gain", "failures"]
"""What a figure shows (`dice.report.figures`)."""
Family = ModelType | Literal["autoregressive", "api", "solutions"]


@stage_config
class ModelEntry:
    """One model of the paper."""

    family: Family
    """How it decodes."""
    trained: str | None = None
    """Unit that stands for it where models are trained: `<size>-<recipe>`."""
    hub: str | None = None
    """Hugging Face id of the released checkpoint."""
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{7,40}$")] | None = None
    """Commit of the checkpoint, as many of its digits as are known; None: none is known, and `main` is fetched. The
    manifest of the fetched folder has the whole commit in either case."""
    decoding: Settings = Field(default_factory=dict)
    """Settings of `dice generate` (paper, A.4.4), or of the family's own decoder."""
    server: Settings | None = None
    """It answers through a server, by these settings of `dice ask`'s server; without `base_url` through a local vLLM with
    the checkpoint of `hub`. None: our own engine. The study may say otherwise (`servers`, `own_engine`)."""
    model_ids: tuple[str, ...] = ()
    """The vendor's names of the model: recorded answers must be of one of them. Empty: any."""
    withdrawn: str | None = None
    """Why it can no longer be called: `shut down on 2026-03-09`."""


@stage_config
class Repository:
    """A repository of the hub: its licence and its geometry."""

    licence: str
    """Its name, with `gated` or `research only` where that is so."""
    terms: str | None = None
    """Terms that a user accepts by name (`accept`) before anything is fetched."""
    geometry: Settings | None = None
    """Fields of its config.json, from which a plan computes memory; None: not known before it is fetched."""


@stage_config
class TableRow:
    """One row of a table."""

    row: str
    """Name of the row: that of the paper's row in experiments/reported, to which it is joined."""
    model: str | None = None
    """Entry of models.yaml."""
    robust: bool = True
    """With the robust check."""
    unchecked: bool = False
    """Where it is measured: once more without the robust check, in a row NAME-unchecked behind it."""
    released: Literal["first_block", "own_prompt"] | None = None
    """Where it is measured: once more with the code that the authors' script takes (`dice reread`), in a row NAME-released
    behind it. `own_prompt`: the script searches the prompt too."""
    unit: str | None = None
    """Unit by name, for the variants of an ablation that have no entry of their own."""
    against: str | None = None
    """Row of the table that it is compared with on the same problems; None: the table's."""
    added: bool = False
    """The paper has no such row: it is in the table where it is measured, and only there."""


@stage_config
class Table:
    """One table."""

    title: str
    """Caption."""
    kind: Literal["suite", "cost", "histogram"] = "suite"
    """Where its numbers come from: scores, manifests of training, the report of curation."""
    rows: tuple[TableRow, ...] = ()
    """Rows of a suite table."""
    against: str | None = None
    """Row that the others are compared with on the same problems."""
    numbers: tuple[Literal["dataset_size", "sft_samples", "rl_samples", "max_new_tokens"], ...] = ()
    """Columns of the paper that describe a row by a number; it is counted again where the row is measured."""
    stages: dict[str, str] = Field(default_factory=dict)
    """For `cost`: the paper's stage -> unit whose training is counted."""
    dataset: str | None = None
    """For `histogram`: data set whose report is counted."""


@stage_config
class Figure:
    """One figure."""

    title: str
    """Caption."""
    kind: FigureKind
    """What is drawn."""
    units: tuple[str, ...] = ()
    """Units whose results are drawn."""
    tables: tuple[int, ...] = ()
    """Tables whose CSV is drawn."""


@stage_config
class ClaimContrast:
    """Rows by name: a unit or a model, `{size}` for each of the claim's sizes, `:unchecked` without the robust check."""

    more: tuple[str, ...] = Field(min_length=1)
    """Rows whose numbers are added."""
    less: tuple[str, ...] = Field(min_length=1)
    """Rows whose numbers are taken away."""


@stage_config
class Claim:
    """One claim of the paper."""

    text: str
    """The claim in a sentence."""
    where: str
    """Where the paper makes it."""
    statistic: Literal["exec", "fast1", "fast2", "cost"] = "exec"
    """What is compared (`dice.report.claims`)."""
    at_most: float | None = None
    """The effect is below this, in points (of a cost, percent); None: it is above 0."""
    sizes: tuple[str, ...] = ("",)
    """Sizes that its contrasts are made for."""
    contrasts: tuple[ClaimContrast, ...] = Field(min_length=1)
    """What must hold for it."""


@stage_config
class Registry:
    """The files of experiments/ together."""

    models: dict[str, ModelEntry]
    """By name."""
    hub: dict[str, Repository] = Field(default_factory=dict)
    """By the repository's name."""
    tables: dict[int, Table]
    """By number."""
    figures: dict[int, Figure] = Field(default_factory=dict)
    """By number."""
    claims: dict[str, Claim] = Field(default_factory=dict)
    """By name."""


def load_registry(folder: str | Path) -> Registry:
    """Read the files of experiments/. Raises DiceError in one sentence."""
    names = ("models", "hub", "tables", "figures", "claims")
    values = {name: read_yaml(Path(folder) / f"{name}.yaml") for name in names}
    registry = parse_config(Registry, values, str(folder))
    revisions: dict[str, str | None] = {}
    for name, entry in registry.models.items():
        if entry.hub is None:
            continue
        if entry.hub not in registry.hub:
            raise DiceError(f"models.yaml, {name}: hub.yaml does not say under which licence {entry.hub} is.")
        if revisions.setdefault(entry.hub, entry.revision) != entry.revision:
            raise DiceError(f"models.yaml, {name}: {entry.hub} has another revision elsewhere in the file.")
    for number, table in registry.tables.items():
        for row in table.rows:
            if row.model is not None and row.model not in registry.models:
                raise DiceError(f"tables.yaml, table {number}, row {row.row}: no model '{row.model}' in models.yaml.")
            if (row.against or table.against) not in (None, *(other.row for other in table.rows)):
                raise DiceError(
                    f"tables.yaml, table {number}: there is no row '{row.against or table.against}' (against)."
                )
    return registry
