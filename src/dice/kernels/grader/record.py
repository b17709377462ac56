"""The record of one candidate's run, and the verdicts made from it: one run, one verdict per protocol."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dice.kernels.checks import is_deceptive
from dice.kernels.compare import Comparison
from dice.kernels.cpu.race import Race
from dice.kernels.records.evidence import RunEvidence
from dice.kernels.records.explanation import Explanation, Mismatch
from dice.kernels.records.extension import BuildResult
from dice.kernels.records.job import LENT, Job, Judging
from dice.kernels.records.verdict import (
    Backend,
    BuildInfo,
    ConditionResult,
    Finding,
    Host,
    Protocol,
    Speedup,
    Stage,
    Status,
    Timing,
    Verdict,
)
from dice.manifest import Stopwatch

MESSAGE_CHARACTERS = 8000
"""Of a verdict; the rest is cut."""


@dataclass
class Record:
    """The record of one run. `status` is about the run as a whole, `comparisons` about its outputs by protocol."""

    status: Status = "correct"
    stage: Stage = "import"
    message: str = ""
    on_gpu: bool = False
    """Whether an out_of_memory is about GPU memory."""
    trials: int = 0
    comparisons: dict[Protocol, Comparison] = field(default_factory=dict)
    race: Race | None = None
    """Proof that a wrong value on the CPU back end depends on the order of threads; None: no proof."""
    explanation: Explanation | None = None
    """For the author of one kernel (`judging.explain`), without the mismatch, of which each protocol has its own."""
    mismatches: dict[Protocol, Mismatch] = field(default_factory=dict)
    lent: list[str] | None = None
    """Names that the reference's module lent to the candidate; None: lending is off in this run."""
    orders_tried: bool = False
    """Whether its kernels ran in other orders of their threads."""
    builds: list[BuildResult] = field(default_factory=list)
    evidence: RunEvidence | None = None
    findings: list[Finding] = field(default_factory=list)
    failures: dict[Protocol, tuple[Status, str]] = field(default_factory=dict)
    """How the run ended under one protocol alone, by an experiment or a condition of that protocol."""
    conditions: list[ConditionResult] | None = None
    """Under `robust`: what became of it under each condition."""
    isolation: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    phase_seconds: dict[str, float] = field(default_factory=dict)

    runtime_ms: dict[Protocol, Timing] = field(default_factory=dict)
    reference_ms: dict[Protocol, Timing] = field(default_factory=dict)
    compiled_reference_ms: Timing | None = None
    speedup: dict[Protocol, Speedup] = field(default_factory=dict)

    def fail(self, status: Status, message: str) -> None:
        """Set how the run ended."""
        self.status, self.message = status, message[:MESSAGE_CHARACTERS]

    @property
    def gpu_was_full(self) -> bool:
        """Whether it ended, under any protocol, because the card had no memory left."""
        return self.on_gpu and "out_of_memory" in (self.status, *(status for status, _ in self.failures.values()))

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the wall time of the block under `name`."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.spent(name, time.monotonic() - begun)

    def spent(self, name: str, seconds: float) -> None:
        """Add to the wall time of a phase."""
        self.phase_seconds[name] = self.phase_seconds.get(name, 0.0) + seconds

    def verdict_fields(self, protocol: Protocol) -> dict[str, Any]:
        """The verdict's fields under one protocol."""
        status, stage, message = self.status, self.stage, self.message
        comparison = self.comparisons.get(protocol)
        if comparison is not None and not comparison.ok:
            status, stage, message = comparison.status, "compare", comparison.message
            if self.race is not None:
                status, message = "unsupported_on_cpu", f"{self.race.message}; {message}"
        elif status == "correct" and protocol in self.failures:
            status, message = self.failures[protocol]
            stage = "compare" if status.startswith("wrong_") else "forward"
        elif status == "correct":
            stage = "done"
        functional_status = status
        if status == "correct" and is_deceptive(self.findings, protocol):
            fatal = [finding for finding in self.findings if finding.fatal[protocol]]
            status, stage = "deceptive", "deception"
            message = "; ".join(f"{finding.name}: {finding.evidence}" for finding in fatal)
        evidence = self.evidence
        operators = evidence.candidate_ops if evidence else None
        return {
            "status": status,
            "functional_status": functional_status,
            "stage": stage,
            "message": message[:MESSAGE_CHARACTERS],
            "trials": self.trials,
            "max_abs_error": comparison.max_abs_error if comparison else None,
            "max_rel_error": comparison.max_rel_error if comparison else None,
            "runtime_ms": self.runtime_ms.get(protocol),
            "reference_ms": self.reference_ms.get(protocol),
            "compiled_reference_ms": self.compiled_reference_ms if protocol == "strict" else None,
            "speedup": self.speedup.get(protocol),
            "lent_names": self.lent if protocol in LENT else None,
            "deception": self.findings,
            "conditions": self.conditions if protocol == "robust" else None,
            "launches": evidence.launches if evidence else None,
            "aten_ops": {name: use.count for name, use in operators.items()} if operators is not None else None,
            "build": self.build_info(),
            "notes": self.notes,
            "explanation": self._explained(protocol),
        }

    def _explained(self, protocol: Protocol) -> Explanation | None:
        if self.explanation is None and not self.mismatches:
            return None
        return (self.explanation or Explanation()).model_copy(update={"mismatch": self.mismatches.get(protocol)})

    def verdicts(
        self, job: Job, judging: Judging, backend: Backend, host: Host, watch: Stopwatch, retries: int = 0
    ) -> list[Verdict]:
        """One verdict per protocol."""
        host = host.model_copy(update={"isolation": self.isolation})
        return [
            Verdict(
                problem_id=job.problem_id,
                sample=job.sample,
                code_sha256=job.code_sha256,
                problem_sha256=job.problem_sha256,
                protocol=protocol,
                backend=backend,
                host=host,
                retries=retries,
                seconds=watch.wall_s,
                phase_seconds={name: round(spent, 4) for name, spent in self.phase_seconds.items()},
                started=watch.started,
                **self.verdict_fields(protocol),
            )
            for protocol in judging.protocols
        ]

    def build_info(self) -> BuildInfo:
        """The builds of all extensions together."""
        slowest = max(self.builds, key=lambda build: build.cpu_seconds, default=None)
        return BuildInfo(
            path=slowest.route if slowest else "none",
            seconds=sum(build.seconds for build in self.builds),
            cpu_seconds=sum(build.cpu_seconds for build in self.builds),
            cached=bool(self.builds) and all(build.cached for build in self.builds),
            extensions=len(self.builds),
            loaded=sum(use.loaded for use in self.evidence.extensions) if self.evidence else 0,
            fallbacks=[text for build in self.builds for text in build.fallbacks],
        )


def worse(earlier: Comparison, later: Comparison) -> Comparison:
    """The later comparison with the larger errors of both."""

    def larger(left: float | None, right: float | None) -> float | None:
        return left if right is None else right if left is None else max(left, right)

    return Comparison(
        later.status,
        later.message,
        larger(earlier.max_abs_error, later.max_abs_error),
        larger(earlier.max_rel_error, later.max_rel_error),
    )
