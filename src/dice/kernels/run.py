"""One candidate's run: import, weights, trials, evidence, timing, in this order, and the record of what was seen.

The candidate always runs before the reference, on inputs made from a secret seed, in a process that never holds an
expected value. `Record` is what came of it, one for all protocols.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from typing import Protocol as Interface

import torch
from pydantic import ValidationError

from dice.errors import HarnessError
from dice.kernels.channel import ChannelGarbage
from dice.kernels.compare import Comparison, compare_outputs
from dice.kernels.evidence import ExtensionUse, RunEvidence
from dice.kernels.extension import BuildResult, ExtensionRequest
from dice.kernels.gpu_slot import GpuSlot
from dice.kernels.job import Judging, Limits
from dice.kernels.reference import Reference, Seeds, kept_flags, to_device
from dice.kernels.sandbox import SandboxSpec
from dice.kernels.session import CandidateFailure, CandidateRaised, Session
from dice.kernels.verdict import Backend, BuildInfo, Finding, Protocol, Stage, Status
from dice.kernels.zygote import Zygote


class BuilderLike(Interface):
    """What a run needs of `dice.kernels.build.Builder`."""

    def build(self, request: ExtensionRequest) -> BuildResult:
        """Build one extension; never raises for a bad source."""
        ...


@dataclass(frozen=True)
class Place:
    """Where and how a candidate is run."""

    zygote: Zygote
    builder: BuilderLike
    backend: Backend
    device: torch.device
    slot: GpuSlot | None
    spec: SandboxSpec
    limits: Limits
    judging: Judging


@dataclass
class Record:
    """What came of one run. `status` is about the run as a whole; `comparisons` judge its outputs per protocol."""

    status: Status = "correct"
    stage: Stage = "import"
    message: str = ""
    on_gpu: bool = False
    """An out_of_memory is about the GPU's memory."""
    trials: int = 0
    comparisons: dict[Protocol, Comparison] = field(default_factory=dict)
    builds: list[BuildResult] = field(default_factory=list)
    evidence: RunEvidence | None = None
    findings: list[Finding] = field(default_factory=list)
    isolation: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    phase_seconds: dict[str, float] = field(default_factory=dict)

    def fail(self, status: Status, message: str) -> None:
        """Note how the run ended."""
        self.status, self.message = status, message

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
        elif status == "correct":
            stage = "done"
        return {
            "status": status,
            "functional_status": status,
            "stage": stage,
            "message": message,
            "trials": self.trials,
            "max_abs_error": comparison.max_abs_error if comparison else None,
            "max_rel_error": comparison.max_rel_error if comparison else None,
            "build": self.build_info(),
            "notes": self.notes,
        }

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


def run_candidate(place: Place, reference: Reference, code: str, seeds: Seeds, alone: bool) -> Record:
    """Run one candidate from import to timing. Raises HarnessError, OSError or an out-of-memory error of the host."""
    run = _Run(place, reference, seeds)
    with kept_flags():
        try:
            with run.gpu(alone):
                run.start()
                run.load(code)
                run.try_inputs()
        except CandidateRaised as failure:
            run.record.on_gpu = failure.error.out_of_memory == "gpu"
            run.record.fail(failure.status, failure.args[0])
        except CandidateFailure as failure:
            run.record.fail(failure.status, failure.args[0])
        finally:
            run.end()
    return run.record


class _Run:
    def __init__(self, place: Place, reference: Reference, seeds: Seeds) -> None:
        self.place, self.reference, self.seeds = place, reference, seeds
        self.record = Record()
        self.session: Session | None = None
        self.evidence = RunEvidence(backend=place.backend, reached="import")
        self.deadline = time.monotonic() + place.limits.total_timeout_s

    @contextlib.contextmanager
    def gpu(self, alone: bool) -> Iterator[None]:
        """Hold the GPU for correctness."""
        slot = self.place.slot
        if slot is None:
            yield
            return
        with contextlib.ExitStack() as stack:
            with self.record.phase("wait_gpu"):
                stack.enter_context(slot.exclusive() if alone else slot.shared())
            yield

    def start(self) -> None:
        with self.record.phase("spawn"):
            memory = int(self.place.limits.memory_gib * 2**30)
            self.session = Session(self.place.zygote, self.place.spec, memory, self.answer_build)
        self.record.isolation = [*self.session.isolation, "wall_clock_limits", "memory_watch"]
        if self.session.missing:
            self.record.notes.append("isolation layers that this machine refused: " + "; ".join(self.session.missing))

    def left_s(self, timeout_s: float) -> float:
        """`timeout_s`, or what is left of the candidate's total time, builds not counted."""
        assert self.session is not None
        return max(0.0, min(timeout_s, self.deadline + self.session.build_s - time.monotonic()))

    # ---- import, init, weights ----

    def load(self, code: str) -> None:
        session, limits, record = self.session, self.place.limits, self.record
        assert session is not None
        with record.phase("import"):
            try:
                limit_s = self.left_s(limits.import_timeout_s)
                where = {"device": self.place.device.type, "backend": self.place.backend}
                reply = session.ask("import", limit_s, code=code, **where)
            except CandidateRaised as failure:
                raise self.import_failure(failure) from None
        if not reply.get("has_model"):
            raise CandidateFailure("import_error", "defines no class ModelNew")
        record.stage = "init"
        self.evidence.reached = "init"
        seed = self.seeds.weights
        with record.phase("init"):
            init_inputs = self.reference.init_inputs(seed)
            reply = session.send_value("init", init_inputs, self.left_s(limits.import_timeout_s), seed=seed)
        with record.phase("weights"):
            self.load_weights(reply.get("state"))

    def import_failure(self, failure: CandidateRaised) -> CandidateFailure:
        """A failed import is a build failure when the error that ended it is the one the builder's refusal raised."""
        built = next((build for build in self.record.builds if build.key == failure.error.build_key), None)
        if built is not None and built.status != "built":
            self.record.stage = "build"
            return CandidateFailure(built.status, built.message or failure.args[0])
        if failure.status != "runtime_error" or failure.error.exit:
            return failure
        return CandidateFailure("import_error", failure.args[0])

    def load_weights(self, state: Any) -> None:
        """Give the candidate the reference's weights when it has parameters of the same names and shapes."""
        assert self.session is not None
        expected = self.reference.model(self.seeds.weights).state_dict()
        shapes = {name: list(tensor.shape) for name, tensor in expected.items()}
        if not shapes:
            return
        if state == shapes:
            self.session.send_value("weights", dict(expected), self.left_s(self.place.limits.import_timeout_s))
        else:
            self.record.notes.append("weights by seed: its parameters differ from the reference's in name or shape")

    # ---- builds ----

    def answer_build(self, message: dict[str, Any]) -> tuple[dict[str, Any], int | None]:
        """Have the builder build what the candidate asks for. The GPU is left to others meanwhile."""
        begun = time.monotonic()
        try:
            request = ExtensionRequest.model_validate(message.get("request"))
        except ValidationError as error:
            raise ChannelGarbage(f"a build request with {error.error_count()} faults") from error
        slot = self.place.slot
        with slot.lent() if slot else contextlib.nullcontext():
            result = self.place.builder.build(request)
        self.record.builds.append(result)
        use = ExtensionUse(name=request.name, status=result.status, loaded=False, message=result.message[:500])
        self.evidence.extensions.append(use)
        self.record.spent("build", time.monotonic() - begun)
        if result.status == "host_error":
            raise HarnessError(f"The builder failed: {result.message[:500]}")
        fd = os.open(result.path, os.O_RDONLY | os.O_CLOEXEC) if result.path else None
        return {"result": result.model_dump()}, fd

    # ---- trials ----

    def try_inputs(self) -> None:
        record, judging = self.record, self.place.judging
        record.stage = "forward"
        self.evidence.reached = "forward"
        model = self.reference.model(self.seeds.weights)
        for index, (seed, forward_seed) in enumerate(zip(self.seeds.inputs, self.seeds.forward, strict=True)):
            with record.phase("inputs"):
                inputs = self.reference.inputs(seed)
            actual = self.candidate_outputs(inputs, forward_seed)
            with record.phase("reference"):
                own = to_device(inputs, self.place.device)
                expected = self.reference.run(model, own, forward_seed)
            with record.phase("compare"):
                self.judge(expected, actual)
            record.trials = index + 1
            if not any(record.comparisons[protocol].ok for protocol in judging.protocols):
                return

    def candidate_outputs(self, inputs: list[Any], seed: int, watch: bool = False) -> Any:
        session, limits = self.session, self.place.limits
        assert session is not None
        with self.record.phase("send"):
            session.send_value("inputs", inputs, self.left_s(limits.forward_timeout_s), slot=0)
        with self.record.phase("forward"):
            offer = session.ask("forward", self.left_s(limits.forward_timeout_s), slot=0, seed=seed, watch=watch)
        with self.record.phase("fetch"):
            limit = int(limits.memory_gib * 2**30)
            return session.fetch(offer, limit, self.left_s(limits.forward_timeout_s), self.place.device)

    def judge(self, expected: Any, actual: Any) -> None:
        for protocol in self.place.judging.protocols:
            earlier = self.record.comparisons.get(protocol)
            if earlier is not None and not earlier.ok:
                continue
            found = compare_outputs(expected, actual, protocol)
            if earlier is not None:
                found = _worse(earlier, found)
            self.record.comparisons[protocol] = found

    # ---- end ----

    def end(self) -> None:
        self.record.evidence = self.evidence
        if self.session is not None:
            with self.record.phase("close"):
                self.session.close()


def _worse(earlier: Comparison, later: Comparison) -> Comparison:
    """The later comparison with the larger errors of both."""

    def larger(left: float | None, right: float | None) -> float | None:
        return left if right is None else right if left is None else max(left, right)

    return Comparison(
        later.status,
        later.message,
        larger(earlier.max_abs_error, later.max_abs_error),
        larger(earlier.max_rel_error, later.max_rel_error),
    )
