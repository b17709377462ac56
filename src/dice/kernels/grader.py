"""The executor: verifies one candidate after another. Trusted; the candidate runs in a process of its own.

`Executor.verify` runs a candidate once and words one verdict per protocol from that run; it never raises for a bad
candidate. What the machine got wrong (driver, memory of the reference, a process killed from outside) is tried once
more and then becomes `host_error`. `Executor.prebuild` only imports the candidate, without a GPU, to warm the build
cache and to settle what cannot be built.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path

import torch

from dice.errors import DiceError, HarnessError
from dice.kernels.gpu_slot import GpuSlot
from dice.kernels.job import Job, Judging, Limits
from dice.kernels.reference import Reference, Seeds
from dice.kernels.run import BuilderLike, Place, Record, run_candidate
from dice.kernels.sandbox import SandboxSpec
from dice.kernels.verdict import Backend, Host, Verdict
from dice.kernels.zygote import Zygote
from dice.manifest import cpu_model, visible_gpus


class Executor:
    """Verifies candidates on one GPU, or on the CPU back end. One job at a time; make one per worker process.

    `device_index`: among the GPUs that this process sees. `threads`: CPU threads of the candidate and the reference.
    `phase_seconds`: where the wall time went, summed over all jobs.
    """

    def __init__(
        self,
        zygote: Zygote,
        builder: BuilderLike,
        backend: Backend,
        device_index: int = 0,
        limits: Limits | None = None,
        judging: Judging | None = None,
        threads: int = 1,
        lock_folder: Path | None = None,
    ) -> None:
        self._limits, self._judging = limits or Limits(), judging or Judging()
        self._builder, self._zygote = builder, zygote
        self._backend: Backend = backend
        self._reference: Reference | None = None
        self._slot: GpuSlot | None = None
        self._device = torch.device("cpu")
        gpu = driver = None
        torch.set_num_threads(threads)
        if backend == "cuda":
            if not torch.cuda.is_available():
                raise DiceError(
                    "The cuda back end needs an NVIDIA GPU and a PyTorch built for CUDA; use --backend cpu."
                )
            self._device = torch.device("cuda", device_index)
            torch.cuda.set_device(self._device)
            properties = torch.cuda.get_device_properties(self._device)
            gpu = properties.name
            driver = next((entry.driver for entry in visible_gpus()), None)
            self._slot = GpuSlot(str(getattr(properties, "uuid", device_index)), lock_folder)
        self._host = Host(
            gpu=gpu, driver=driver, cuda=torch.version.cuda, torch=torch.__version__, cpu=cpu_model(), isolation=[]
        )
        self._spec = sandbox_spec(self._limits, backend, device_index if backend == "cuda" else None, threads)
        self.phase_seconds: dict[str, float] = {}

    def verify(self, job: Job) -> list[Verdict]:
        """One verdict per protocol. Raises DiceError only for a problem file that is no problem."""
        started, begun = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
        if job.code is None:
            record = Record(status="no_code", stage="extract", message=job.no_code_reason)
            return self._verdicts(job, record, started, begun, retries=0)
        record = self._attempt(job, alone=False)
        retries = 0
        if record.status == "host_error" or (record.status == "out_of_memory" and record.on_gpu):
            # Beside others neither the candidate nor the reference can be blamed for a full card.
            first, retries = record, 1
            record = self._attempt(job, alone=True)
            record.notes.append(f"tried again, alone: the first try ended with {first.status} ({first.message[:200]})")
        return self._verdicts(job, record, started, begun, retries)

    def _attempt(self, job: Job, alone: bool) -> Record:
        seeds = Seeds.draw(self._judging.seed, self._judging.correctness_trials)
        place = Place(
            zygote=self._zygote,
            builder=self._builder,
            backend=self._backend,
            device=self._device,
            slot=self._slot,
            spec=self._spec,
            limits=self._limits,
            judging=self._judging,
        )
        try:
            reference = self._reference_for(job)
            record = run_candidate(place, reference, job, seeds, alone)
        except HarnessError as error:
            record = Record(status="host_error", message=str(error))
        except (torch.OutOfMemoryError, MemoryError, OSError) as error:
            record = Record(
                status="host_error", message=f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"
            )
        finally:
            if self._device.type == "cuda":
                torch.cuda.empty_cache()  # the card is shared with the other executors
        for phase, seconds in record.phase_seconds.items():
            self.phase_seconds[phase] = self.phase_seconds.get(phase, 0.0) + seconds
        return record

    def _reference_for(self, job: Job) -> Reference:
        if self._reference is None or self._reference.code != job.problem_code:
            self._reference = None
            self._reference = Reference(job.problem_id, job.problem_code, self._device)
        return self._reference

    def _verdicts(self, job: Job, record: Record, started: str, begun: float, retries: int) -> list[Verdict]:
        host = self._host.model_copy(update={"isolation": record.isolation})
        return [
            Verdict(
                problem_id=job.problem_id,
                sample=job.sample,
                code_sha256=job.code_sha256,
                protocol=protocol,
                backend=self._backend,
                host=host,
                retries=retries,
                seconds=time.monotonic() - begun,
                started=started,
                **record.verdict_fields(protocol),
            )
            for protocol in self._judging.protocols
        ]

    def close(self) -> None:
        """Release the reference, the lock files and the device memory."""
        self._reference = None
        if self._slot is not None:
            self._slot.close()
            self._slot = None

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
        output_bytes=limits.output_mib << 20,
        cuda_visible_devices=visible,
        threads=threads,
    )
