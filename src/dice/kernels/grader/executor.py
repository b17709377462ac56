"""The executor verifies one candidate after another. It is trusted; the candidate runs in its own process.

`Executor.verify` runs a candidate as often as its protocols need (`dice.kernels.grader.lending.runs`) and makes one verdict
per protocol. It never raises for a bad candidate. A fault of the machine (driver, memory of the reference, a process killed
from outside) is tried once more and then becomes `host_error`. `Prebuilder` only imports the candidate, without a GPU, to
fill the build cache and to settle candidates that cannot be built.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterator

import torch

from dice.errors import DiceError, HarnessError
from dice.kernels.grader.explaining import flop_of
from dice.kernels.grader.gpu_memory import GpuMemory
from dice.kernels.grader.gpu_slot import GpuSlot
from dice.kernels.grader.lending import runs
from dice.kernels.grader.place import BuilderLike, Place
from dice.kernels.grader.record import Record
from dice.kernels.grader.reference import Reference, Seeds, kept_flags
from dice.kernels.grader.sequence import prebuild_candidate, run_candidate
from dice.kernels.records.host import gpu_driver, this_host
from dice.kernels.records.job import Job, Judging, Limits
from dice.kernels.records.verdict import Backend, Verdict
from dice.kernels.sandbox.fork_server import ForkServer
from dice.kernels.sandbox.isolation import SandboxSpec
from dice.manifest import Stopwatch

KEPT_SHARE = 100
"""An executor may keep 1 / KEPT_SHARE of the card's memory between candidates."""


class Executor:
    """Verifies candidates on one GPU, or on the CPU back end. One job at a time; make one per worker process.

    `device_index`: among the GPUs that this process sees. `threads`: CPU threads of the candidate and the reference.
    """

    def __init__(
        self,
        fork_server: ForkServer,
        builder: BuilderLike,
        backend: Backend,
        device_index: int = 0,
        limits: Limits | None = None,
        judging: Judging | None = None,
        threads: int = 1,
    ) -> None:
        limits, device, slot = limits or Limits(), torch.device("cpu"), None
        self._reference: Reference | None = None
        self._memory: GpuMemory | None = None
        self._kept_bytes = 0
        self._host = this_host()
        torch.set_num_threads(threads)
        if backend == "cuda":
            if not torch.cuda.is_available():
                raise DiceError(
                    "The cuda back end needs an NVIDIA GPU and a PyTorch built for CUDA; use --backend cpu."
                )
            device = torch.device("cuda", device_index)
            torch.cuda.set_device(device)
            properties = torch.cuda.get_device_properties(device)
            self._host = self._host.model_copy(update={"gpu": properties.name, "driver": gpu_driver()})
            self._kept_bytes = properties.total_memory // KEPT_SHARE
            key = str(getattr(properties, "uuid", device_index))
            slot = GpuSlot(key)
            self._memory = GpuMemory(key, properties.total_memory)
        spec = sandbox_spec(limits, backend, device_index if backend == "cuda" else None, threads)
        self._place = Place(fork_server, builder, backend, device, slot, spec, limits, judging or Judging())

    def verify(self, job: Job) -> list[Verdict]:
        """One verdict per protocol. Raises DiceError only for a problem file that is no problem."""
        if job.code is None:
            record = Record(status="no_code", stage="extract", message=job.no_code_reason)
            return record.verdicts(job, self._place.judging, self._place.backend, self._host, Stopwatch())
        asked = self._place.judging
        found = [verdict for judging, lent in runs(job, asked) for verdict in self._verify(job, judging, lent)]
        return sorted(found, key=lambda verdict: asked.protocols.index(verdict.protocol))

    def _verify(self, job: Job, judging: Judging, lent: list[str] | None) -> list[Verdict]:
        """The verdicts of one run, or of a second one where the first met a fault of the machine."""
        watch, retries = Stopwatch(), 0
        record = self._attempt(job, judging, lent, alone=False)
        if record.status == "host_error" or record.gpu_was_full:
            # While others use the card, a full card is neither the candidate's nor the reference's fault.
            first, retries = record, 1
            record = self._attempt(job, judging, lent, alone=True)
            record.notes.append(f"tried again, alone: the first try ended with {first.status} ({first.message[:200]})")
        return record.verdicts(job, judging, self._place.backend, self._host, watch, retries)

    def _attempt(self, job: Job, judging: Judging, lent: list[str] | None, alone: bool) -> Record:
        seeds = Seeds.draw(judging.seed, judging.correctness_trials)
        place = dataclasses.replace(self._place, judging=judging)
        try:
            reference = self._reference_for(job)
            watch = Stopwatch()
            with self._room(reference, judging, alone):
                waited_s = watch.wall_s
                record = _run(place, reference, job, seeds, lent)
                record.spent("wait_memory", waited_s)
        except _HOST_ERRORS as error:
            record = _host_error(error)
        return record

    @contextlib.contextmanager
    def _room(self, reference: Reference, judging: Judging, alone: bool) -> Iterator[None]:
        """Hold the estimated GPU memory of a candidate for this problem, or all memory."""
        slot = self._place.slot
        if self._memory is None or slot is None:
            yield
            return
        longer = judging.measure_time or judging.protocols != ("paper",)
        needed_bytes = reference.sizes.on_card(longer=longer)
        with self._memory.whole() if alone else self._memory.room_for(needed_bytes):
            try:
                yield
            finally:
                # A little is kept, because each return waits for the driver.
                if torch.cuda.memory_reserved() > self._kept_bytes:
                    with slot.shared():  # never beside a timing
                        torch.cuda.empty_cache()

    def _reference_for(self, job: Job) -> Reference:
        if self._reference is None or self._reference.code != job.problem_code:
            self._reference = None
            self._reference = Reference(job.problem_id, job.problem_code, self._place.device)
        return self._reference

    def close(self) -> None:
        """Release the reference, the lock files and the device memory."""
        self._reference = None
        for lock in (self._place.slot, self._memory):
            if lock is not None:
                lock.close()
        self._place, self._memory = dataclasses.replace(self._place, slot=None), None

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Prebuilder:
    """Imports candidates in a sandbox without a GPU, so that their builds are in the cache when they run.

    `judging`: the protocols of final verdicts; None: no verdict is final here.
    """

    def __init__(
        self,
        fork_server: ForkServer,
        builder: BuilderLike,
        backend: Backend,
        limits: Limits | None = None,
        judging: Judging | None = None,
    ) -> None:
        limits = limits or Limits()
        spec = sandbox_spec(limits, backend, None, threads=1)
        device = torch.device("cpu")
        self._place = Place(fork_server, builder, backend, device, None, spec, limits, judging or Judging())
        self._is_final = judging is not None
        self._host = this_host()
        self._work: tuple[str, int] = ("", 0)

    def work(self, job: Job) -> int:
        """What the job's problem has to compute (`flop_of`), 0 where that is not known: so much longer its slow candidates
        take."""
        if self._work[0] != job.problem_code:
            work = 0
            with contextlib.suppress(Exception), kept_flags():  # the executor says what is wrong with a problem
                reference = Reference(job.problem_id, job.problem_code, self._place.device)
                with torch.device("meta"):
                    inputs = list(reference.namespace["get_inputs"]())
                work = flop_of(reference, 0, inputs) or 0
            self._work = (job.problem_code, work)
        return self._work[1]

    def prebuild(self, job: Job) -> list[Verdict] | None:
        """Final verdicts when no GPU could change them: the text is no Python, or a refused build ended its import.

        None otherwise, also for whatever goes wrong on this side: then the executor sees it again, with a GPU.
        """
        watch = Stopwatch()
        if job.code is None or "cpp_extension" not in job.code:
            return None
        (judging, lent), *others = runs(job, self._place.judging)
        try:
            record = prebuild_candidate(self._place, job, lent)
        except (*_HOST_ERRORS, DiceError):
            return None
        if record is None or not self._is_final or others:  # other runs may end otherwise
            return None
        return record.verdicts(job, judging, self._place.backend, self._host, watch)


_HOST_ERRORS = (HarnessError, torch.OutOfMemoryError, MemoryError, OSError)


def _run(place: Place, reference: Reference, job: Job, seeds: Seeds, lent: list[str] | None) -> Record:
    """`run_candidate`, with errors of the host as records: an exception that went further would keep tensors alive."""
    try:
        return run_candidate(place, reference, job, seeds, lent)
    except _HOST_ERRORS as error:
        return _host_error(error)


def _host_error(error: BaseException) -> Record:
    if isinstance(error, HarnessError):
        return Record(status="host_error", message=str(error))
    return Record(status="host_error", message=f"{type(error).__name__}: {' '.join(str(error).split())[:500]}")


def sandbox_spec(limits: Limits, backend: Backend, device_index: int | None, threads: int) -> SandboxSpec:
    """The sandbox that `limits` ask for. `device_index`: the GPU that the candidate may see, None for none."""
    gib = 1 << 30
    visible = ""
    if device_index is not None:
        mine = [entry for entry in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if entry.strip()]
        visible = mine[device_index].strip() if mine else str(device_index)
    return SandboxSpec(
        scratch_bytes=int(limits.file_gib * gib),
        file_bytes=int(limits.file_gib * gib),
        processes=limits.processes,
        # The CUDA driver maps far more than it uses; there the watch on resident memory has to do.
        data_bytes=int(limits.memory_gib * gib) if backend == "cpu" else None,
        cuda_visible_devices=visible,
        threads=threads,
    )
