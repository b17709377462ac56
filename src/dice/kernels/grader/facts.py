"""Reports of the candidate's process, validated and added to the evidence."""

from __future__ import annotations

from collections.abc import Sequence

from dice.kernels.records.evidence import OutputFacts, RunEvidence
from dice.kernels.sandbox.replies import ExtensionReport, Facts


def merged(earlier: OutputFacts | None, later: OutputFacts) -> OutputFacts:
    """The worse of both."""
    if earlier is None:
        return later
    return OutputFacts(
        foreign_types=sorted({*earlier.foreign_types, *later.foreign_types}),
        instance_attributes=sorted({*earlier.instance_attributes, *later.instance_attributes}),
    )


def take_facts(evidence: RunEvidence, facts: Facts) -> None:
    """Add what the candidate's process reported to the evidence."""
    brought = facts.model_fields_set
    if facts.outputs is not None:
        evidence.outputs = merged(evidence.outputs, facts.outputs)
    if "operators" in brought:
        evidence.candidate_ops = facts.operators
    for name in brought - {"outputs", "operators", "extensions"}:
        setattr(evidence, name, getattr(facts, name))
    _take_extensions(evidence, facts.extensions)


def _take_extensions(evidence: RunEvidence, reports: Sequence[ExtensionReport]) -> None:
    """The outcome of each build in the candidate's process, in the order of the requests."""
    for use, report in zip(evidence.extensions, reports, strict=False):
        if use.status == "built":
            use.loaded, use.calls_forward = report.loaded, report.calls_forward
