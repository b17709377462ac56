"""Infilling: a CUDA program as prefix, middle and suffix (paper section 4.2 and Figure 4).

The middle is the one piece of Python that writes the CUDA source. In the authors' files it is always
`source = \"\"\"...\"\"\"`; in general it is the assignment, or the expression inside a call, that `find_source` finds.
The prefix is everything before it (imports, constants, comments), the suffix everything after it (C++ declarations,
`load_inline`, `ModelNew`). Cuts are made where the parsed file has them, so the three always join to it exactly.

In training the model gets prefix and suffix. `dice.data.middle.extract_middle` cuts its answer to a middle, and the file
is put together from the three, so that the model writes nothing outside the middle.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel
from tqdm import tqdm

from dice.config import add_options, config_from, stage_config, to_spec
from dice.data.middle import cut_middle
from dice.data.pair import OnBad, Pair, from_published, read_pairs
from dice.data.source_string import FoundBy, InfillingRefused, find_source
from dice.jsonl import BadRow, write_jsonl, write_text
from dice.manifest import Stopwatch, write_manifest
from dice.python_text import parse_python, span_of


@dataclass(frozen=True)
class InfillingSplit:
    """`prefix + middle + suffix` is the candidate, byte for byte."""

    prefix: str
    middle: str
    suffix: str
    variable: str | None
    """What the middle assigns to; None when the middle is an expression inside a call."""
    found_by: FoundBy

    def into(self, pair: Pair) -> Pair:
        """`pair` with these three parts."""
        return pair.model_copy(update={"prefix": self.prefix, "middle": self.middle, "suffix": self.suffix})


def split_candidate(cuda_code: str) -> InfillingSplit:
    """Split a candidate at its CUDA source string.

    Raises InfillingRefused with one of the reasons syntax, no_extension, no_kernel_source, several_sources, appended,
    not_a_string (the source is computed, not written), hidden_variable (the scaffold does not show which name the
    middle must assign, because it binds the name as well).
    """
    try:
        tree = parse_python(cuda_code)
    except SyntaxError as error:
        raise InfillingRefused("syntax", f"line {error.lineno or '?'}: {error.msg}") from error
    place = find_source(tree)
    mark = "\ufeff" * cuda_code.startswith("\ufeff")
    text = cuda_code.removeprefix(mark)
    start, end = span_of(place.node, text)
    prefix, middle, suffix = mark + text[:start], text[start:end], text[end:]
    found = cut_middle(prefix, suffix, middle)  # the scaffold must show the model what it has to write
    if found.middle != middle:
        raise InfillingRefused("not_a_string", "the source is not one plain string expression")
    return InfillingSplit(prefix, middle, suffix, place.variable, place.found_by)


class Refusal(BaseModel):
    """A pair that was not split."""

    id: str
    reason: str
    message: str


class InfillReport(BaseModel):
    """The report of `dice infill`, written beside its output as `OUT.report.json`."""

    pairs: int
    """Pairs read."""
    split: int
    """Pairs written."""
    kept: int
    """Written pairs that were split already; their split is kept."""
    kept_differing: list[str]
    """Ids of kept splits that differ from ours, or that ours would refuse."""
    variables: dict[str, int]
    """What the middle assigns to -> pairs, most frequent first; `(expression)` for a middle inside a call."""
    found_by: dict[str, int]
    """How the source was found -> pairs."""
    reasons: dict[str, int]
    """Reason -> pairs that were refused, most frequent first."""
    refused: list[Refusal]
    bad_rows: list[BadRow]


def split_pairs(pairs: Sequence[Pair], bad_rows: Sequence[BadRow] = ()) -> tuple[list[Pair], InfillReport]:
    """Split every pair. Pairs that cannot be split are left out and reported; given splits are kept and compared."""
    done: list[Pair] = []
    refused: list[Refusal] = []
    differing: list[str] = []
    variables: Counter[str] = Counter()
    found_by: Counter[str] = Counter()
    for pair in tqdm(pairs, desc="infill", unit="pair", disable=None):
        try:
            split = split_candidate(pair.cuda_code)
        except InfillingRefused as refusal:
            if pair.middle is None:
                refused.append(Refusal(id=pair.id, reason=refusal.reason, message=str(refusal)))
                continue
            split = None
        if pair.middle is not None and (split is None or split.into(pair) != pair):
            differing.append(pair.id)
        if split is not None:
            variables[split.variable or "(expression)"] += 1
            found_by[split.found_by] += 1
        done.append(pair if pair.middle is not None or split is None else split.into(pair))
    report = InfillReport(
        pairs=len(pairs),
        split=len(done),
        kept=sum(pair.middle is not None for pair in pairs),
        kept_differing=differing,
        variables=dict(variables.most_common()),
        found_by=dict(found_by.most_common()),
        reasons=dict(Counter(refusal.reason for refusal in refused).most_common()),
        refused=refused,
        bad_rows=list(bad_rows),
    )
    return done, report


@stage_config
class InfillConfig:
    """Settings of `dice infill`."""

    pairs: str
    """Pairs: JSON lines, or the authors' JSON array."""
    out: str
    """JSON lines of the pairs that could be split."""
    on_bad: OnBad = "refuse"
    """`refuse` the file when a row is bad, or `skip` and report it."""


def infill(config: InfillConfig) -> InfillReport:
    """Run the stage: write the split pairs, the report and the manifest."""
    watch = Stopwatch()
    pairs, bad_rows = read_pairs(config.pairs, on_bad=config.on_bad, convert=from_published("dice"))
    done, report = split_pairs(pairs, bad_rows)
    write_jsonl(config.out, done)
    write_text(config.out + ".report.json", report.model_dump_json(indent=2) + "\n")
    extra = report.model_dump(exclude={"refused", "bad_rows"})
    write_manifest(config.out, stage="infill", spec=to_spec(config), watch=watch, inputs=[config.pairs], extra=extra)
    return report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dice infill`."""
    add_options(parser, InfillConfig, "pairs", "out", "on_bad")


def run(args: argparse.Namespace) -> int:
    """Entry point of `dice infill`."""
    config = config_from(args, InfillConfig)
    report = infill(config)
    print(f"{report.split} of {report.pairs} pairs split, written to {config.out}")
    for reason, count in report.reasons.items():
        print(f"  {count:6d}  {reason}")
    if report.bad_rows:
        print(f"  {len(report.bad_rows):6d}  bad rows (see {config.out}.report.json)")
    return 0
