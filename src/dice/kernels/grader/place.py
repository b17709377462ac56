"""Where and how candidates are run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol as Interface

import torch

from dice.kernels.builder.resource_usage import Multiprocessor
from dice.kernels.grader.gpu_slot import GpuSlot
from dice.kernels.records.explanation import KernelUse
from dice.kernels.records.extension import BuildResult, ExtensionRequest
from dice.kernels.records.job import Judging, Limits
from dice.kernels.records.verdict import Backend
from dice.kernels.sandbox.fork_server import ForkServer
from dice.kernels.sandbox.isolation import SandboxSpec


class BuilderLike(Interface):
    """The part of `dice.kernels.builder.builder.Builder` that a run needs."""

    def known(self, request: ExtensionRequest) -> BuildResult | None:
        """The result that no compiler is needed for."""
        ...

    def build(self, request: ExtensionRequest) -> BuildResult:
        """Build one extension; never raises for a bad source."""
        ...

    def kernel_uses(self, result: BuildResult, processor: Multiprocessor) -> list[KernelUse]:
        """What the kernels of a built object use of a GPU."""
        ...


@dataclass(frozen=True)
class Place:
    """Where and how a candidate is run."""

    fork_server: ForkServer
    builder: BuilderLike
    backend: Backend
    device: torch.device
    slot: GpuSlot | None
    spec: SandboxSpec
    limits: Limits
    judging: Judging

    @contextlib.contextmanager
    def gpu_lent(self) -> Iterator[None]:
        """Let other candidates use the GPU while this one leaves it idle."""
        with self.slot.lent() if self.slot else contextlib.nullcontext():
            yield
