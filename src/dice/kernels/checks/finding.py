"""Findings of the catalogue's kinds, and which of several of one kind is kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from dice.jsonl import valid_text
from dice.kernels.checks.catalogue import CATALOGUE
from dice.kernels.records.verdict import Finding


def finding(name: str, source: Literal["static", "dynamic"], evidence: str, *, warns: bool = False) -> Finding:
    """A finding of the catalogue's kind `name`; evidence is cut at 300 characters. warns: fatal under no protocol, for
    what was only read."""
    trick = CATALOGUE[name]
    return Finding(
        name=name,
        rule=trick.rule,
        source=source,
        evidence=valid_text(evidence[:300]),  # a literal may say half a character
        fatal={"paper": trick.paper and not warns, "strict": trick.strict and not warns},
    )


def one_of_each(found: Iterable[Finding]) -> list[Finding]:
    """The first finding of each name, or the first that condemns where the first only warns."""
    kept: dict[str, Finding] = {}
    for item in found:
        if item.name not in kept or (any(item.fatal.values()) and not any(kept[item.name].fatal.values())):
            kept[item.name] = item
    return list(kept.values())
