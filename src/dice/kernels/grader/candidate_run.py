"""The work in progress on one candidate: its process, its builds, its time, and what was seen so far.

`dice.kernels.grader.sequence` says what happens in which order.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator
from typing import Any

import torch

from dice.errors import DiceError
from dice.kernels.candidate.moved_constants import Move
from dice.kernels.cpu.race import Turn
from dice.kernels.grader.builds import Builds
from dice.kernels.grader.facts import add_notes, take_facts
from dice.kernels.grader.launches import Launches
from dice.kernels.grader.place import Place
from dice.kernels.grader.record import Record
from dice.kernels.grader.reference import Reference, Seeds, Trial, in_order_of
from dice.kernels.records.evidence import Phase, RunEvidence
from dice.kernels.records.verdict import Protocol, Stage
from dice.kernels.sandbox import gpu_buffer
from dice.kernels.sandbox.leaves import tensors_of
from dice.kernels.sandbox.replies import Done, Facts, Forwarded, Imported, Made, Offer, Reply
from dice.kernels.sandbox.session import CandidateFailure, CandidateRaised, LastSeconds, Session
from dice.kernels.sandbox.strides import Strides

BY_SEED = "weights by seed: its parameters differ from the reference's in name or shape"

DRAWN_ON_GPU = "inputs drawn on the GPU: they are large"
_SOON_DRAWN_BYTES = 32 << 20
"""Above this size of the inputs the GPU draws, or is released meanwhile: the CPU of a busy machine takes 0.1 s or more."""
_SPARE_BYTES = 64 << 20
"""Bytes of outputs that are copied beyond twice the size of the right ones."""
NAN_BYTE = 0xFF
"""Memory full of it is NaN in every float type."""
UNSUPPORTED = "unsupported_on_cpu:"
"""Start of the exception that the CPU back end raises for what it does not support."""


class CandidateRun:
    """The work in progress on one candidate."""

    def __init__(self, place: Place, reference: Reference, seeds: Seeds) -> None:
        self.place, self.reference, self.seeds = place, reference, seeds
        self.record = Record()
        self.evidence = RunEvidence(backend=place.backend, reached="import")
        self.record.evidence = self.evidence
        self.builds = Builds(place, self.record, self.evidence)
        self.weights_seed = seeds.weights
        self.last: Trial | None = None
        self.last_print: Any = None
        """Fingerprint of the candidate's last output (`observation.fingerprint`)."""
        self.one_stream = False
        """Whether nothing in the candidate's text uses more than PyTorch's current stream."""
        self.names_narrow_types = False
        """Whether the candidate's text has the name of a type narrower than fp32."""
        self.inputs_change = False
        """Whether the reference overwrites its inputs."""
        self.advances = False
        """Whether the reference's output follows its earlier calls, as where forward advances a buffer."""
        self._draws_on_gpu = True
        self._again = False
        """Whether this process is not the first, made for an experiment: what it builds and says is known."""
        self.code = self._lent = ""
        self._connections: int | None = None
        self._launches: Launches | None = None
        self._session: Session | None = None
        self._deadline = time.monotonic() + place.limits.total_timeout_s

    @property
    def session(self) -> Session:
        """The candidate's process."""
        assert self._session is not None
        return self._session

    @contextlib.contextmanager
    def gpu(self, alone: bool = False) -> Iterator[None]:
        """Hold the GPU, shared or alone. A candidate that fails is ended before the GPU is released: neither its remaining
        work nor the end of its context may fall into another candidate's timing."""
        slot = self.place.slot
        if slot is None:
            yield
            return
        with contextlib.ExitStack() as stack:
            with self.record.phase("wait_gpu"), self.not_counted():
                stack.enter_context(slot.exclusive() if alone else slot.shared())
            try:
                yield
            except BaseException:
                self.end()
                raise

    def start(self, cuda_connections: int | None = None) -> None:
        """Fork and confine the candidate's process."""
        self._connections = cuda_connections
        self.one_stream = cuda_connections is not None
        with self.record.phase("spawn"):
            memory = int(self.place.limits.memory_gib * 2**30)
            spec = self.place.spec.model_copy(update={"cuda_connections": cuda_connections})
            self.builds.begin(self._again)
            on_card = self.place.device.type == "cuda" and gpu_buffer.possible()
            self._session = Session(self.place.fork_server, spec, memory, self.builds.answer, on_card)
            self._launches = Launches(self.evidence)
        if self._again:
            return
        self.record.isolation = [*self.session.isolation, "wall_clock_limits", "memory_watch"]
        if self.session.missing:
            self.record.notes.append("isolation layers that this machine refused: " + "; ".join(self.session.missing))

    def revive(self) -> None:
        """Another process with a new model, where an experiment has ended the last one. It adds nothing to the evidence.

        Raises CandidateFailure.
        """
        if self._session is not None and self._session.alive:
            return
        stage, reached = self.record.stage, self.evidence.reached
        self._again = True
        self.end()
        self.start(self._connections)
        self.import_code(self.code, self._lent)
        self.make_model(self.seeds.weights)
        self.record.stage, self.evidence.reached = stage, reached

    @contextlib.contextmanager
    def counting_steps(self) -> Iterator[None]:
        """Another process within the block, whose extensions count the steps of their code (CPU back end)."""
        self.end()
        self.builds.counts_steps = True
        try:
            self.revive()
            yield
        finally:
            self.builds.counts_steps = False
            self.end()

    def left_s(self, timeout_s: float) -> float:
        """The smaller of `timeout_s` and the rest of the candidate's total time, without builds and waiting."""
        build_s = self._session.build_s if self._session else 0.0
        rest_s = max(0.0, self._deadline + build_s - time.monotonic())
        return timeout_s if timeout_s < rest_s else LastSeconds(rest_s, self.place.limits.total_timeout_s)

    @contextlib.contextmanager
    def not_counted(self) -> Iterator[None]:
        """The block does not count towards the candidate's total time."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self._deadline += time.monotonic() - begun

    def standing(self) -> bool:
        """Whether the outputs are right under at least one protocol so far."""
        return any(comparison.ok for comparison in self.record.comparisons.values())

    def enter(self, stage: Stage, phase: Phase) -> None:
        """Note how far the candidate got."""
        self.record.stage = stage
        self.evidence.reached = phase

    def fail_under(self, protocol: Protocol, failure: CandidateFailure) -> None:
        """End the candidate, which failed under this protocol alone."""
        self.end()
        self.record.on_gpu = isinstance(failure, CandidateRaised) and failure.error.out_of_memory == "gpu"
        self.record.failures[protocol] = failure.status, failure.args[0]

    # ---- import, init, weights ----

    def import_code(self, code: str, lent: str = "") -> None:
        """Import the candidate's file, which may request builds. `lent`: a program whose names it finds."""
        limits, record = self.place.limits, self.record
        self.code, self._lent = code, lent
        with record.phase("import"):
            try:
                limit_s = self.left_s(limits.import_timeout_s)
                where = {"device": self.place.device.type, "backend": self.place.backend}
                reply = self.session.ask(
                    "import", Imported, limit_s, fds=[self.ledger.fd], code=code, lent=lent, **where
                )
            except CandidateRaised as failure:
                raise self._import_failure(failure) from None
        self.take(reply.facts)
        if not reply.has_model:
            raise CandidateFailure("import_error", "defines no class ModelNew")

    def construct(self, seed: int, odd_constants: bool = False, move: Move | None = None) -> Made:
        """Make a new ModelNew in the candidate's process after `seed`.

        `odd_constants`: weights that are the same everywhere begin with other values. `move`: those of one value do.
        """
        self.enter("init", "init")
        self.weights_seed = seed
        with self.record.phase("init"):
            init_inputs = self.reference.init_inputs(seed)
            try:
                limit_s = self.left_s(self.place.limits.import_timeout_s)
                how = {"odd_constants": odd_constants, "move": dataclasses.asdict(move) if move else None}
                reply = self.session.send_value("init", Made, init_inputs, limit_s, seed=seed, **how)
            except CandidateRaised as failure:
                raise self.builds.failure_behind(failure) or failure from None
        self.take(reply.facts)
        return reply

    def make_model(self, seed: int) -> None:
        """Make a new ModelNew with the reference's weights where names and shapes fit, else with those of the seed."""
        self.weights_seed = seed
        state = self.reference.model(seed).state_dict()
        if not self.construct_with(state) and state and BY_SEED not in self.record.notes:
            self.record.notes.append(BY_SEED)

    def construct_with(self, weights: dict[str, torch.Tensor], odd_constants: bool = False) -> bool:
        """Make a new ModelNew after the last seed and give it `weights`. Returns whether their names and shapes fit."""
        state = self.construct(self.weights_seed, odd_constants).state
        if not weights or state != {name: list(tensor.shape) for name, tensor in weights.items()}:
            return False
        with self.record.phase("weights"):
            limit_s = self.left_s(self.place.limits.import_timeout_s)
            self.session.send_value("weights", Done, dict(weights), limit_s)
        return True

    def _import_failure(self, failure: CandidateRaised) -> CandidateFailure:
        built = self.builds.failure_behind(failure)
        if built is not None or failure.status != "runtime_error" or failure.error.exit:
            return built or failure
        return CandidateRaised("import_error", failure.error, failure.facts)

    def lacks_support(self, failure: CandidateFailure) -> bool:
        """Whether the CPU back end raised, and not the candidate."""
        raised = isinstance(failure, CandidateRaised) and failure.error.text.startswith(UNSUPPORTED)
        return raised and self.place.backend == "cpu"

    # ---- questions and answers ----

    def draw_inputs(self, seed: int) -> list[Any]:
        """The inputs of one call. Large inputs are drawn on the GPU where their seed is secret, because then the
        same numbers are never needed again. Otherwise, and where `get_inputs` needs the CPU, the GPU is lent meanwhile."""
        place, reference = self.place, self.reference
        with self.not_counted():
            if place.slot is None or reference.input_bytes <= _SOON_DRAWN_BYTES:
                return reference.inputs(seed)
            if place.judging.seed is None and self._draws_on_gpu:
                try:
                    inputs = reference.inputs(seed, place.device)
                except DiceError:  # raised again on the CPU if the GPU is not the reason
                    self._draws_on_gpu = False
                else:
                    if DRAWN_ON_GPU not in self.record.notes:
                        self.record.notes.append(DRAWN_ON_GPU)
                    return inputs
            with self.place.gpu_lent():
                return reference.inputs(seed)

    def ask(self, op: str, kind: type[Reply], forwards: int = 1, **arguments: Any) -> Reply:
        """One request under the limit of a forward, or of as many as it makes."""
        limit_s = self.left_s(max(1, forwards) * self.place.limits.forward_timeout_s)
        return self.session.ask(op, kind, limit_s, **arguments)

    def send(
        self, op: str, inputs: list[Any], slot: int = 0, strides: Strides | None = None, within: bool = False
    ) -> None:
        """Send inputs to the candidate. `inputs`: as new tensors, contiguous but for `strides`, or views of larger memory
        (`within`). `refill`: as new values of the tensors it has."""
        with self.record.phase("send"):
            limit_s = self.left_s(self.place.limits.forward_timeout_s)
            more: dict[str, Any] = {} if strides is None else {"strides": strides}
            more |= {"within": True} if within else {}
            self.session.send_value(op, Done, inputs, limit_s, slot=slot, **more)

    def forward(
        self,
        seed: int,
        watch: bool = False,
        keep: int = 0,
        poison: int = NAN_BYTE,
        trace: bool = False,
        inference: bool = False,
    ) -> Forwarded:
        """Call forward on the inputs of slot 0; the reply offers the outputs. For the options see `Forwards.do_forward` in
        `dice.kernels.candidate.forwards`."""
        with self.record.phase("forward"):
            self.ledger.deal()
            how = {"watch": watch, "keep": keep, "poison": poison, "trace": trace, "inference": inference}
            reply = self.ask("forward", Forwarded, slot=0, seed=seed, **how)
            self.ledger.learn(reply.facts)
            self.ledger.read()
        return reply

    # ---- facts and launches ----

    def take(self, facts: Facts) -> None:
        """Add what the candidate's process reports to the evidence."""
        if self._launches is not None:  # it may have ended
            self._launches.learn(facts)
        if not self._again:
            take_facts(self.evidence, facts)

    @property
    def ledger(self) -> Launches:
        """Where launches leave their marks."""
        assert self._launches is not None
        return self._launches

    def launches(self) -> dict[str, int] | None:
        """Launches by kernel in the last forward; None where some extension may launch without being counted."""
        return self.ledger.last.launches if self.counts_launches else None

    def is_idle(self) -> bool:
        """Whether the last forward ran no kernel, unlike the watched one."""
        return bool(sum((self.evidence.launches or {}).values())) and self.launches() == {}

    @property
    def counts_launches(self) -> bool:
        """Whether every extension's launches are marked."""
        return all(build.launches != "unknown" for build in self.record.builds if build.status == "built")

    def fetch(self, offer: Offer, like: Any) -> Any:
        """Copy the values that the candidate offers, with dictionaries in the order of those of `like`: the right ones, or
        those of other inputs. Raises CandidateFailure for what is far larger than those."""
        right = sum(tensor.numel() * tensor.element_size() for tensor in tensors_of(like))
        with self.record.phase("fetch"):
            limit_s = self.left_s(self.place.limits.forward_timeout_s)
            return in_order_of(like, self.session.fetch(offer, 2 * right + _SPARE_BYTES, limit_s, self.place.device))

    def take_turns(self, turn: Turn) -> None:
        """Set the order in which the CPU back end's threads run from now on."""
        self.ask("order", Done, order=int(turn.order), seed=turn.seed, kernel=turn.kernel)

    def leave(self) -> None:
        """`end`, but never during a timing: the end of a context keeps the GPU and its driver busy."""
        if self._session is not None:
            with self.gpu():
                self.end()

    def end(self) -> None:
        """End the candidate and wait until nothing is left of it."""
        session, self._session = self._session, None
        if self._launches is not None:
            self._launches.close()
            self._launches = None
        self.builds.close()
        if session is not None:
            add_notes(self.evidence, session.noted)
            self.evidence.child_processes = sorted({*self.evidence.child_processes, *session.child_processes})
            with self.record.phase("close"):
                session.close()
