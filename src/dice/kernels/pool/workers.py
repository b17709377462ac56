"""The pool's workers on this machine: how many, on which GPUs, with which caches, and what they do."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from dice.config import stage_config
from dice.errors import DiceError, HarnessError
from dice.kernels.builder.process import compiler_server
from dice.kernels.candidate.process import candidate_server
from dice.kernels.pool.pool import Onward, Pool, WorkerPlan, start_importing
from dice.kernels.records.failed import failed_verdicts
from dice.kernels.records.job import Job, Judging, Limits
from dice.kernels.records.verdict import Backend, Verdict
from dice.kernels.sandbox.candidate_layers import candidate_layers
from dice.kernels.sandbox.fork_server import ForkServer
from dice.manifest import visible_gpus

if TYPE_CHECKING:
    from dice.kernels.builder.builder import Builder

EXECUTORS_PER_GPU = 10
"""Enough to keep the driver busy, which makes one context at a time."""
MOST_THREADS = 16
"""Most threads of a candidate on the CPU back end where there are fewer executors than cores."""
STUCK_SLACK_S = 120.0
"""Seconds beyond all limits of a candidate after which its worker is replaced."""


@stage_config
class Machine:
    """Workers, GPUs and caches. No setting here may change a verdict."""

    jobs: int | None = Field(default=None, ge=1)
    """Executors per GPU, or in all on the CPU back end; None: 10 per GPU, or one per core."""
    threads: int | None = Field(default=None, ge=1, le=MOST_THREADS)
    """Threads of a candidate on the CPU back end; None: the cores divided by the executors. With more than one, the
    blocks of a grid run at the same time, and sums by atomics round in another order each time."""
    builders: int | None = Field(default=None, ge=0)
    """CPU build workers; None: one per core with `cuda`, none with `cpu`, where the executors build."""
    gpus: tuple[int, ...] | None = None
    """Indices of the GPUs to use; None: all."""
    arch: str | None = None
    """CUDA architecture to build for, e.g. `9.0`; None: the GPU's own."""
    cache: str | None = None
    """Folder of the build cache, shared by runs and machines; None: `$XDG_CACHE_HOME/dice/builds`."""
    cache_gib: float = Field(default=20.0, gt=0)
    """Size above which the least recently used builds are evicted."""
    require_isolation: bool = False
    """Refuse to run where a layer of isolation is missing; else verdicts and the manifest name it."""
    audit_share: float = Field(default=0.0, ge=0, le=1)
    """Share of builds that the stock route builds as well, to be compared; a difference is an alarm."""


def cache_folder(machine: Machine) -> Path:
    """Where builds are kept."""
    if machine.cache is not None:
        return Path(machine.cache).resolve()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dice" / "builds"


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def chosen_gpus(backend: Backend, machine: Machine) -> list[int]:
    """GPU indices to use; raises DiceError for a machine that lacks what the back end needs."""
    if shutil.which(os.environ.get("CXX", "c++")) is None:  # as Toolchain.find looks for it
        raise DiceError("no C++ compiler: install g++ and put it on the PATH, or set CXX.")
    if backend == "cpu":
        return []
    found = len(visible_gpus())
    if not found:
        raise DiceError("--backend cuda needs an NVIDIA GPU and its driver (nvidia-smi lists none); try --backend cpu.")
    if machine.gpus == ():
        raise DiceError("--gpus names no GPU; leave it out to use all.")
    unknown = [index for index in machine.gpus or () if not 0 <= index < found]
    if unknown:
        raise DiceError(f"--gpus names GPU {unknown[0]}, but this machine has {found} (0 to {found - 1}).")
    return list(machine.gpus) if machine.gpus is not None else list(range(found))


def make_builder(backend: Backend, limits: Limits, machine: Machine, compilers: ForkServer) -> Builder:
    """The builder of one worker; all workers share its cache folder and the fork server of compilers."""
    # a quarter of all that `dice.kernels.api` imports, and most who import it never build
    from dice.kernels.builder.builder import Builder

    return Builder(
        cache_folder(machine),
        backend,
        arch=machine.arch,
        timeout_s=limits.build_timeout_s,
        max_cache_gib=machine.cache_gib,
        audit_share=machine.audit_share,
        compilers=compilers,
    )


def check_isolation(missing: Sequence[str], required: bool) -> None:
    """Raise HarnessError when a layer of isolation is missing that is `required`."""
    if required and missing:
        raise HarnessError(
            f"This machine lacks isolation ({'; '.join(missing)}): run as root where namespaces are allowed, or without "
            "--require-isolation."
        )


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A machine that is ready. `isolation`: layers that confine `candidates` and `compilers`, and those `missing`."""

    plans: list[WorkerPlan]
    isolation: dict[str, list[str]]


@contextlib.contextmanager
def workers(backend: Backend, judging: Judging, limits: Limits, machine: Machine, n_jobs: int) -> Iterator[Prepared]:
    """Prepare the machine, start the fork servers, and yield the plans of the pool.

    Raises DiceError or HarnessError for a machine that cannot do the work.
    """
    with contextlib.closing(candidate_server()) as fork_server, contextlib.closing(compiler_server()) as compilers:
        fork_server.begin()  # imports beside what follows: all of it takes seconds
        compilers.begin()
        gpus = chosen_gpus(backend, machine)
        builder = make_builder(backend, limits, machine, compilers)
        compilers_layers, lacking = builder.jail.layers()
        missing = [f"compilers: {layer}" for layer in lacking]
        check_isolation(missing, machine.require_isolation)  # before the minutes that headers may take
        builder.prepare()
        fork_server.show(builder.visible_folders())
        fork_server.start()
        layers, lacking = candidate_layers(fork_server, ",".join(map(str, gpus)))
        missing = [*lacking, *missing]
        check_isolation(missing, machine.require_isolation)
        if len(builder.toolchain.arches) == 1:  # the workers need not ask the driver again, which answers one at a time
            machine = dataclasses.replace(machine, arch=builder.toolchain.arches[0])
        shared = _Shared(backend, judging, limits, machine, fork_server, compilers)
        yield Prepared(
            list(_plans(shared, n_jobs, gpus)),
            {"candidates": layers, "compilers": compilers_layers, "missing": missing},
        )


@contextlib.contextmanager
def open_pool(backend: Backend, judging: Judging, limits: Limits, machine: Machine, most_jobs: int) -> Iterator[Pool]:
    """A pool that takes jobs until the block ends. `most_jobs`: the most jobs at a time.

    Raises DiceError or HarnessError for a machine that cannot do the work, DiceError for conditions that do not exist.
    """
    if judging.conditions:
        from dice.kernels.conditions.table import chosen  # imports PyTorch, which the command does not need

        chosen(judging.conditions)

    def host_error(job: Job, text: str) -> list[Verdict]:
        return failed_verdicts(job, "host_error", "build", text, judging, backend)

    start_importing()
    with (
        workers(backend, judging, limits, machine, most_jobs) as ready,
        Pool(ready.plans, host_error, ready.isolation) as pool,
    ):
        yield pool


@dataclasses.dataclass(frozen=True)
class _Shared:
    """What all workers of a pool are given."""

    backend: Backend
    judging: Judging
    limits: Limits
    machine: Machine
    fork_server: ForkServer
    compilers: ForkServer

    def builder(self) -> Builder:
        """A worker's own."""
        return make_builder(self.backend, self.limits, self.machine, self.compilers)


def _plans(shared: _Shared, n_jobs: int, gpus: list[int]) -> Iterator[WorkerPlan]:
    limits, machine = shared.limits, shared.machine
    timeout_s = limits.total_timeout_s + limits.build_timeout_s + STUCK_SLACK_S
    default = cores() if shared.backend == "cuda" else 0
    builders = min(default if machine.builders is None else machine.builders, n_jobs)
    if builders:
        yield WorkerPlan("build", builders, functools.partial(BuildHandler, shared=shared), timeout_s)
    if shared.backend == "cpu":
        count = min(machine.jobs or cores(), n_jobs)
        threads = machine.threads or min(MOST_THREADS, max(1, cores() // count))
        handler = functools.partial(ExecuteHandler, shared=shared, gpu=0, threads=threads)
        yield WorkerPlan("execute", count, handler, 2 * timeout_s)
        return
    for gpu in gpus:
        count = min(machine.jobs or EXECUTORS_PER_GPU, n_jobs)
        yield WorkerPlan("execute", count, functools.partial(ExecuteHandler, shared=shared, gpu=gpu), 2 * timeout_s)


class BuildHandler:
    """Imports candidates without a GPU: fills the build cache and settles candidates that cannot be built."""

    def __init__(self, *, shared: _Shared) -> None:
        from dice.kernels.grader.executor import Prebuilder  # imports torch, which the command does not need

        os.nice(5)  # executors and their candidates get the cores first
        self._prebuilder = Prebuilder(
            shared.fork_server, shared.builder(), shared.backend, shared.limits, shared.judging
        )

    def handle(self, job: Job) -> list[Verdict] | Onward:
        """`Onward`: the candidate goes on to an executor."""
        return self._prebuilder.prebuild(job) or Onward(self._prebuilder.work(job))

    def close(self) -> None:
        """Nothing outlives a job."""


class ExecuteHandler:
    """Verifies candidates on one GPU, or on the CPU."""

    def __init__(self, *, shared: _Shared, gpu: int, threads: int = 1) -> None:
        from dice.kernels.grader.executor import Executor

        builder = shared.builder()
        # The same as for candidates of one stream (grader.sequence.connections): quick to start, and timed in the same way.
        os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "1")
        self._executor = Executor(
            shared.fork_server, builder, shared.backend, gpu, shared.limits, shared.judging, threads
        )

    def handle(self, job: Job) -> list[Verdict]:
        """The candidate's final verdicts."""
        return self._executor.verify(job)

    def close(self) -> None:
        """Release the GPU."""
        self._executor.close()
