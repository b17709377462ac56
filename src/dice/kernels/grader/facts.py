"""Reports of the candidate's process, validated and added to the evidence."""

from __future__ import annotations

from collections.abc import Sequence

from dice.kernels.checks.workload import work_of
from dice.kernels.records.evidence import Access, OpUse, OutputFacts, RunEvidence
from dice.kernels.sandbox.replies import ExtensionReport, Facts


def merged(earlier: OutputFacts | None, later: OutputFacts) -> OutputFacts:
    """The worse of both."""
    if earlier is None:
        return later
    return OutputFacts(
        foreign_types=sorted({*earlier.foreign_types, *later.foreign_types}),
        instance_attributes=sorted({*earlier.instance_attributes, *later.instance_attributes}),
        given_back=sorted({*earlier.given_back, *later.given_back}),
    )


def busier(earlier: dict[str, OpUse], later: dict[str, OpUse]) -> dict[str, OpUse]:
    """Of two recorded calls the one whose operators did more work: what one hid, the other may show. Allocations and views,
    of which the call with kernels may have more, are none."""
    return max(later, earlier, key=lambda uses: (sum(work_of(uses).values()), len(uses)))


def take_facts(evidence: RunEvidence, facts: Facts) -> None:
    """Add what the candidate's process reported to the evidence."""
    brought = facts.model_fields_set
    if facts.outputs is not None:
        evidence.outputs = merged(evidence.outputs, facts.outputs)
    if "operators" in brought:
        evidence.candidate_ops = busier(evidence.candidate_ops or {}, facts.operators)
    evidence.made_ops = busier(evidence.made_ops or {}, facts.made)
    evidence.loaded_ops = busier(evidence.loaded_ops or {}, facts.loaded)
    for name in brought - {"outputs", "operators", "made", "loaded", "extensions", "kernels"}:
        setattr(evidence, name, getattr(facts, name))
    _take_extensions(evidence, facts.extensions)


def add_notes(evidence: RunEvidence, noted: Sequence[Access]) -> None:
    """Add what was reported when it happened and is missing in the last report."""
    known = {(each.event, each.detail, each.phase, each.line) for each in evidence.accesses}
    evidence.accesses += [each for each in noted if (each.event, each.detail, each.phase, each.line) not in known]


def _take_extensions(evidence: RunEvidence, reports: Sequence[ExtensionReport]) -> None:
    """The outcome of each build in the candidate's process, in the order of the requests."""
    for use, report in zip(evidence.extensions, reports, strict=False):
        if use.status == "built":
            use.loaded, use.calls_forward = report.loaded, report.calls_forward
