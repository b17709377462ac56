"""The page on one kernel as data: verdicts, and what follows from them for the kernel's author."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pydantic import BaseModel, ConfigDict

from dice.kernels.checks import CATALOGUE
from dice.kernels.page.own_lines import line_of_evidence, own_errors
from dice.kernels.records.explanation import Explanation
from dice.kernels.records.verdict import Backend, ConditionResult, Finding, Speedup, Timing, Verdict

_FIRST_LINE: dict[Backend, int] = {"cpu": 1, "cuda": 4}
"""Of the author's text in `cuda.cu`: PyTorch puts three #includes before it, the CPU back end none."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Place(_Part):
    """A message about a line of the author's file."""

    line: int | None
    """None: the place is not known."""
    text: str
    source: str = ""
    """The line as it stands in the file."""


class Sign(_Part):
    """A finding of the checks for deception."""

    name: str
    line: int | None
    evidence: str
    meaning: str
    fatal_under: list[str]
    """Protocols under which it makes the kernel `deceptive`; none: a warning."""


class Speed(_Part):
    """Times under one protocol, and what they mean for the card."""

    protocol: str
    runtime_ms: Timing
    reference_ms: Timing | None
    speedup: Speedup | None
    bytes_per_s: float | None
    flop_per_s: float | None


class Page(_Part):
    """Everything that is printed, and the verdicts it was made from."""

    kernel: str
    reference: str
    correct: bool
    """Under every protocol that was asked for."""
    headline: str
    message: str
    """The first failure in the verifier's words; empty where there is none."""
    errors: list[Place]
    """Errors of compilers, with lines of the author's file."""
    hazards: list[str]
    """What was seen of races, barriers, memory that was read or left unwritten."""
    explanation: Explanation | None
    speeds: list[Speed]
    signs: list[Sign]
    conditions: list[str]
    """Under `robust`: what breaks it, and how many conditions do not."""
    notes: list[str]
    verdicts: list[Verdict]


def make_page(kernel: str, reference: str, code: str, verdicts: Sequence[Verdict]) -> Page:
    """The page. `verdicts`: of one kernel, one for each protocol; `code`: its text."""
    failed = next((verdict for verdict in verdicts if verdict.status != "correct"), None)
    shown = failed or verdicts[0]
    building = shown.status == "compile_error"
    found = own_errors(code, shown.message, _FIRST_LINE[shown.backend]) if building else []
    errors = [Place(line=error.line, text=error.text, source=error.source) for error in found]
    return Page(
        kernel=kernel,
        reference=reference,
        correct=failed is None,
        headline=headline(verdicts),
        message=shown.message,
        errors=errors,
        hazards=hazards(verdicts),
        explanation=next((v.explanation for v in (shown, *verdicts) if v.explanation), None),
        speeds=[speed for verdict in verdicts if (speed := speed_of(verdict)) is not None],
        conditions=[line for verdict in verdicts for line in tried(verdict.conditions or [])],
        signs=[sign_of(finding, code) for finding in shown.deception],
        notes=shown.notes,
        verdicts=list(verdicts),
    )


def headline(verdicts: Sequence[Verdict]) -> str:
    """`correct under paper and strict`; `correct under paper, wrong_value under strict`."""
    by_status: dict[str, list[str]] = {}
    for verdict in verdicts:
        by_status.setdefault(verdict.status, []).append(verdict.protocol)
    return ", ".join(f"{status} under {' and '.join(names)}" for status, names in by_status.items())


def hazards(verdicts: Sequence[Verdict]) -> list[str]:
    """What a sanitizer would say, from messages, notes and findings; only of what was looked for."""
    found: dict[str, None] = {}
    for verdict in verdicts:
        races = [note for note in verdict.notes if note.startswith("data race")]
        found |= dict.fromkeys(
            f"{note.split(': ')[0]}: other orders of its threads give other results" for note in races
        )
        if match := re.search(r"deadlock: [^()\n]*", verdict.message):
            found[f"barrier: {match.group().removeprefix('deadlock: ').strip()}"] = None
        if match := re.search(r"Assertion `.*?' failed at \S+|__trap\(\) at \S+", verdict.message):
            found[match.group()] = None
        if re.search(r"SIGSEGV|SIGBUS|illegal memory access|misaligned address", verdict.message):
            found["bounds: it reads or writes memory that is not its own"] = None
        for finding in verdict.deception:
            if finding.source == "dynamic" and finding.name in _MEMORY:
                found[f"{_MEMORY[finding.name]}: {finding.evidence}"] = None
    orders_tried = any(verdict.explanation is not None and verdict.explanation.orders_tried for verdict in verdicts)
    if orders_tried and not any("data race" in text for text in found):
        found["no data race found: its threads were run in other orders as well"] = None
    return list(found)


def tried(results: Sequence[ConditionResult]) -> Iterator[str]:
    """The conditions that a kernel does not pass, each with its reason; then how many it passes."""
    for one in results:
        if one.outcome in ("broken", "refused"):
            yield f"{one.name}: {one.outcome}{'' if one.decides else ' (a warning)'}: {one.detail}"
    if results:
        right = sum(one.outcome == "right" for one in results)
        yield f"right under {right} of {len(results)}; seed {results[0].seed}"


_MEMORY = {
    "uninitialised_output": "output not written",
    "unstable_output": "memory read before it is written",
    "deferred_work": "output written after forward returned",
}


def speed_of(verdict: Verdict) -> Speed | None:
    """Times of a verdict, and bytes and operations a second; None where nothing was timed."""
    if verdict.runtime_ms is None:
        return None
    work = verdict.explanation.work if verdict.explanation else None
    per_s = 1e3 / verdict.runtime_ms.median if verdict.runtime_ms.median else None
    return Speed(
        protocol=verdict.protocol,
        runtime_ms=verdict.runtime_ms,
        reference_ms=verdict.reference_ms,
        speedup=verdict.speedup,
        bytes_per_s=work.bytes * per_s if work and per_s else None,
        flop_per_s=work.flop * per_s if work and per_s and work.flop else None,
    )


def sign_of(finding: Finding, code: str) -> Sign:
    """A finding with the author's line and its meaning."""
    trick = CATALOGUE.get(finding.name)
    return Sign(
        name=finding.name,
        line=line_of_evidence(code, finding.evidence),
        evidence=finding.evidence,
        meaning=trick.meaning if trick else "",
        fatal_under=[protocol for protocol, fatal in finding.fatal.items() if fatal],
    )
