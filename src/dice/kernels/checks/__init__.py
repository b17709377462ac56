"""The checks for deception: findings that a candidate does not compute what it claims to compute.

`static_findings` reads the text, `dynamic_findings` reads the evidence of a run, `findings` combines both, and
`is_deceptive` says whether they are fatal under a protocol. Nothing here runs a candidate.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence, Set

from dice.errors import DiceError
from dice.kernels.checks.answers import answer_findings
from dice.kernels.checks.arithmetic import all_kernels_copy, no_kernel_reads
from dice.kernels.checks.catalogue import CATALOGUE
from dice.kernels.checks.circumstances import chooses_by_content, circumstance_findings
from dice.kernels.checks.cuda_choices import choices_by_content
from dice.kernels.checks.cuda_kernels import (
    aten_calls,
    callable_names,
    kernel_names,
    launched_functors,
    library_calls,
    line_of,
)
from dice.kernels.checks.cuda_numbers_read import readers, writers
from dice.kernels.checks.cuda_rules import cuda_findings
from dice.kernels.checks.dynamic import dynamic_findings
from dice.kernels.checks.finding import finding, one_of_each
from dice.kernels.checks.host_arrays import host_array_findings
from dice.kernels.checks.precision import for_narrow_inputs, precision_findings, uses_narrow_types
from dice.kernels.checks.python_names import decoded, parse_deep
from dice.kernels.checks.python_source import ENTRY_CLASS, PythonSource
from dice.kernels.checks.seen import Seen
from dice.kernels.checks.substitution import cuda_strings, paper_findings, substitution_findings
from dice.kernels.checks.tampering import tampering_findings
from dice.kernels.checks.timing import timing_findings
from dice.kernels.checks.torch_calls import torch_computations
from dice.kernels.records.evidence import RunEvidence
from dice.kernels.records.extension import ExtensionRequest
from dice.kernels.records.verdict import Finding, Protocol
from dice.kernels.source.cuda_source import CudaSource

MOST_CHARACTERS = 1 << 20
"""Of a candidate's text with the modules that it writes and the sources that it builds; checks of more would take minutes."""

_RAN_UNREAD = "its text cannot be read as Python, though it ran."

__all__ = ["CATALOGUE", "dynamic_findings", "findings", "is_deceptive", "static_findings"]


def static_findings(
    code: str,
    requests: Sequence[ExtensionRequest] | None = None,
    reference_code: str | None = None,
    seen: Seen | None = None,
) -> list[Finding]:
    """Findings of the text, at most one of each name.

    requests: the builds that the candidate requested when it was imported. None: it was not imported; then the sources
    are the strings of the file that look like CUDA. reference_code: the problem's file; None: unknown, then findings
    that need a comparison with it are not made. seen: what a run showed; without one, a rule that needs it only warns.
    Text that is not Python gives no finding. Raises DiceError for more than MOST_CHARACTERS.
    """
    text = _decoded(code)
    return [] if text is None else _static_findings(text, requests, reference_code, seen)


def _static_findings(
    code: str, requests: Sequence[ExtensionRequest] | None, reference_code: str | None, seen: Seen | None
) -> list[Finding]:
    """The same of decoded text."""
    length = len(code) + sum(len(text) for request in requests or [] for text in request.texts)
    if length > MOST_CHARACTERS:
        raise DiceError(
            f"its text has {length:,} characters, with its modules and sources; {MOST_CHARACTERS:,} are read at most."
        )
    source = _parsed(code, ran=seen.lines if seen is not None else frozenset())
    if source is None and seen is not None:
        raise DiceError(_RAN_UNREAD)
    if source is None:
        return []
    problem = None if reference_code is None else _decoded(reference_code)
    reference = None if problem is None else _parsed(problem, entry="Model")
    asked = None if requests is None else _units(requests)
    units = asked or [unit for _, unit in cuda_strings(source)]
    narrow = reference is None or uses_narrow_types(reference)
    spared = set() if narrow else for_narrow_inputs(source, units)
    found = [
        *paper_findings(source, asked),
        *substitution_findings(source),
        *tampering_findings(source, seen),
        *timing_findings(source, seen),
        *answer_findings(source, reference),
        *circumstance_findings(source, reference, _names(readers, units), _names(writers, units)),
        *host_array_findings(source, reference, seen),
        *(() if reference is None else precision_findings(source, reference, seen)),
        *(item for unit in units for item in cuda_findings(unit, seen, problem_is_narrow=narrow, spared=spared)),
        *_content_in_cpp(reference, units),
        *_idle_kernels(source, reference, units),
    ]
    return one_of_each(found)


def _names(of_functions: Callable[[CudaSource], Set[str]], units: Iterable[CudaSource]) -> set[str]:
    return {name for unit in units for name in of_functions(unit)}


def _content_in_cpp(reference: PythonSource | None, units: list[CudaSource]) -> Iterable[Finding]:
    """Choices in C++ between kernels and PyTorch by values of a tensor, unless the reference makes such choices, too."""
    if reference is None or not chooses_by_content(reference):
        for unit in units:
            yield from (finding("input_sniffing", "static", line_of(unit, token)) for token in choices_by_content(unit))


def _idle_kernels(source: PythonSource, reference: PythonSource | None, units: list[CudaSource]) -> Iterable[Finding]:
    """Kernels that only copy, and kernels that read nothing, where the reference computes."""
    if reference is None or next(torch_computations(reference, reference.in_forward), None) is None:
        return
    computing = next(torch_computations(source, source.in_forward), None)
    library = next((call for unit in units for call in [*library_calls(unit), *aten_calls(unit)]), None)
    copying = all_kernels_copy(units)
    if copying:
        where = (
            source.line(computing) if computing is not None else f"C++ calls {library}" if library else "nothing else"
        )
        yield finding("identity_kernel", "static", f"{copying} only copies; besides: {where}")
    blind = no_kernel_reads(units)
    if blind and computing is None and not library:
        yield finding("constant_output", "static", f"no kernel reads any of its pointers, {blind} for one")


def _decoded(code: str) -> str | None:
    """The text as Python reads it; None where it reads none."""
    with contextlib.suppress(SyntaxError):
        return decoded(code)
    return None


def _parsed(text: str, entry: str = ENTRY_CLASS, ran: Set[int] = frozenset()) -> PythonSource | None:
    """None for what is not Python; an error of ours in reading it is not taken for that."""
    try:
        parse_deep(text)
    except SyntaxError:
        return None
    return PythonSource(text, entry, ran)


def findings(
    code: str,
    reference_code: str | None = None,
    requests: Sequence[ExtensionRequest] | None = None,
    evidence: RunEvidence | None = None,
) -> list[Finding]:
    """Static and dynamic findings together, at most one of each name; dynamic findings come first.

    A run shows whether kernels were launched, so after a run the static `kernel_never_launched` is dropped. Raises DiceError
    for a text that is too long, and for one that ran and cannot be read.
    """
    ran = evidence is not None and evidence.reached in ("forward", "timing")
    # A candidate that ended earlier may not have made all of its requests.
    seen = Seen.by(evidence) if evidence is not None and ran else None
    if evidence is None:
        return static_findings(code, requests, reference_code, seen)
    text = _decoded(code)
    whole = None if text is None else _with_modules(text, evidence.modules.values())
    if ran and whole is None:
        raise DiceError(_RAN_UNREAD)
    static = [] if whole is None else _static_findings(whole, requests if ran else None, reference_code, seen)
    units = _units(requests or [])
    kernels = {name for unit in units for name in kernel_names(unit)}
    libraries = any(library_calls(unit) for unit in units) or launched_functors(units)
    fallback = any(item.name == "fallback_to_pytorch" for item in static)
    dynamic = list(
        dynamic_findings(
            evidence,
            kernels,
            callable_names(units),
            calls_libraries=libraries,
            has_fallback=fallback,
            replays_graphs=any(item.name == "cuda_graph" for item in static),
        )
    )
    if ran:
        static = [item for item in static if item.name != "kernel_never_launched"]
    return one_of_each([*dynamic, *static])


def _with_modules(text: str, modules: Iterable[str]) -> str:
    """The candidate's decoded text with the modules that it wrote behind it, as if they were part of its file: what is read
    by name is found there. What does not parse was never run."""
    texts = [text]
    for module in modules:
        if len(module) > MOST_CHARACTERS:  # too long to be read, so that all of it is
            texts.append(module)
            continue
        with contextlib.suppress(SyntaxError):
            readable = decoded(module)
            parse_deep(readable)
            texts.append(readable.removeprefix("\ufeff"))
    return "\n".join(texts)


def is_deceptive(found: Iterable[Finding], protocol: Protocol) -> bool:
    """Whether any finding is fatal under `protocol`; none is under `robust`."""
    return any(item.fatal.get(protocol, False) for item in found)


def _units(requests: Iterable[ExtensionRequest]) -> list[CudaSource]:
    return [CudaSource(text) for request in requests for text in request.texts]
