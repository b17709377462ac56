"""What a run showed of things that a text only names. A rule that reads names condemns only together with it."""

from __future__ import annotations

from dataclasses import dataclass

from dice.kernels.records.evidence import RunEvidence

_AS_EXACT = 16.0
"""Multiple of the fp32 reference's error up to which narrow arithmetic counts as exact as fp32: a sum in another order
gives less than 10, two bfloat16 terms instead of three give 40 and more."""


@dataclass(frozen=True)
class Seen:
    """Observations of one run; None where there was none: then the text decides."""

    imports: frozenset[str] | None
    """Names that the objects of its extensions import."""
    imported: frozenset[tuple[int, str]]
    """Modules that it imported by `importlib.import_module`, with the line that did."""
    slept: bool | None
    """Whether a call of forward slept."""
    lines: frozenset[int]
    """Lines of the candidate's file that ran in one call of forward."""
    kernels: frozenset[str]
    """Kernels that this call launched."""
    as_exact: bool | None
    """Whether the outputs are as close to those in fp64 as the reference's in fp32."""

    @staticmethod
    def by(evidence: RunEvidence) -> Seen:
        """What the evidence of a run that reached forward shows."""
        built = [use.imports for use in evidence.extensions if use.status == "built"]
        known = [names for names in built if names is not None]
        slept = any(access.event == "time.sleep" and in_a_call(access.phase) for access in evidence.accesses)
        return Seen(
            imports=frozenset(name for names in known for name in names) if len(known) == len(built) else None,
            imported=frozenset((each.line, each.detail) for each in evidence.accesses if each.event == "import_module"),
            slept=slept or (None if evidence.candidate_ops is None else False),  # None: no call was watched to its end
            lines=frozenset(evidence.lines),
            kernels=frozenset(
                name.partition("<")[0].rpartition("::")[2] for name, count in (evidence.launches or {}).items() if count
            ),
            as_exact=None if evidence.rounding is None else evidence.rounding <= _AS_EXACT,
        )


def in_a_call(phase: str) -> bool:
    """Whether something happened in a call of forward, timed or not."""
    return phase in ("forward", "timing")
