"""Reports of the candidate's process, validated and added to the evidence."""

from __future__ import annotations

import contextlib
from typing import Any

from pydantic import TypeAdapter, ValidationError

from dice.kernels.records.evidence import Access, Change, OpUse, OutputFacts, RunEvidence


def merged(earlier: OutputFacts | None, later: OutputFacts) -> OutputFacts:
    """The worse of both."""
    if earlier is None:
        return later
    return OutputFacts(
        foreign_types=sorted({*earlier.foreign_types, *later.foreign_types}),
        instance_attributes=sorted({*earlier.instance_attributes, *later.instance_attributes}),
    )


def take_facts(evidence: RunEvidence, facts: Any) -> None:
    """Add what the candidate's process reported to the evidence. A malformed report counts as no report."""
    if not isinstance(facts, dict):
        return
    kinds: dict[str, tuple[str, Any]] = {
        "outputs": ("outputs", OutputFacts),
        "operators": ("candidate_ops", dict[str, OpUse]),
        "hidden_exceptions": ("hidden_exceptions", list[str]),
        "changes": ("changes", list[Change]),
        "accesses": ("accesses", list[Access]),
        "python_threads": ("python_threads", list[str]),
        "launches": ("launches", dict[str, int] | None),
        "launches_init": ("launches_init", dict[str, int] | None),
        "failed_launches": ("failed_launches", dict[str, int]),
    }
    for name, (field, kind) in kinds.items():
        if name in facts:
            with contextlib.suppress(ValidationError):
                value = TypeAdapter(kind).validate_python(facts[name])
                setattr(evidence, field, merged(evidence.outputs, value) if field == "outputs" else value)
    _take_extensions(evidence, facts.get("extensions"))


def _take_extensions(evidence: RunEvidence, reports: Any) -> None:
    """The outcome of each build in the candidate's process, in the order of the requests."""
    if not isinstance(reports, list):
        return
    for use, report in zip(evidence.extensions, reports, strict=False):
        if isinstance(report, dict) and use.status == "built":
            use.loaded = report.get("loaded") is True
            kernels, calls = report.get("kernels"), report.get("calls_forward")
            use.kernels = [str(name) for name in kernels] if isinstance(kernels, list) else None
            use.calls_forward = calls if type(calls) is int else None
