"""Values that the grader and a candidate's process hand each other in shared memory, on the host or on the card."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from dice.kernels.candidate.accelerator import Accelerator
from dice.kernels.sandbox import values
from dice.kernels.sandbox.gpu_buffer import GpuBuffer
from dice.kernels.sandbox.shared_memory import SharedBuffer


class Exchange:
    """The side of the candidate's process."""

    def __init__(self, accelerator: Accelerator) -> None:
        self._accelerator = accelerator
        self._mapped: dict[str, SharedBuffer] = {}
        self._offered: list[torch.Tensor] = []
        self._header: values.Header = {}

    def receive(self, header: values.Header, fds: Sequence[int]) -> Any:
        """Rebuild a value of the grader's on the device, in memory of this process."""
        with self._accelerator.honest():
            if not fds:
                return values.read(header, torch.empty(0, dtype=torch.uint8), self._place)
            if _on_card(fds[0]):
                with self._attached(fds[0], values.outline(header).n_bytes) as flat:
                    return values.read(header, flat, self._place)
            flat = self._shared("inputs", fds[0], os.fstat(fds[0]).st_size)
            value = values.read(header, flat, self._place)
            self._accelerator.settle()
            return value

    def _shared(self, use: str, fd: int, size: int) -> torch.Tensor:
        """The grader's buffer on the host in this process's memory. It stays there: the grader sends the same one again, and
        to touch fresh pages takes time."""
        buffer = self._mapped.get(use)
        if buffer is None or not os.path.sameopenfile(buffer.fd, fd):
            if buffer is not None:
                self._mapped.pop(use).close()
            buffer = self._mapped[use] = SharedBuffer(os.dup(fd), size)
        return buffer.tensor

    @contextlib.contextmanager
    def _attached(self, fd: int, size: int) -> Iterator[torch.Tensor]:
        """The grader's buffer on the card, for the block."""
        assert self._accelerator.cuda is not None
        self._accelerator.cuda.synchronize()  # which makes a context where there is none yet
        with contextlib.closing(GpuBuffer.attach(fd, size)) as buffer:
            yield buffer.tensor

    def _place(self, view: torch.Tensor, device: str) -> torch.Tensor:
        return view.to(self._accelerator.device, copy=True)

    def offer(self, value: Any) -> dict[str, Any]:
        """Lay out a value for the grader to fetch; what to tell it: the header, and how many bytes it is."""
        with self._accelerator.honest():
            self._header, self._offered, size = values.lay_out(value)
        return {"header": self._header, "bytes": size}

    def hand_over(self, fd: int, size: int) -> None:
        """Write the offered value into the grader's buffer of `size` bytes."""
        with self._accelerator.honest():
            if _on_card(fd):
                with self._attached(fd, size) as flat:
                    values.write(self._offered, self._header, flat)
            else:
                values.write(self._offered, self._header, self._shared("outputs", fd, size))
        self.withdraw()

    def withdraw(self) -> None:
        """Hold what was offered no longer."""
        self._offered = []


def _on_card(fd: int) -> bool:
    """Whether a buffer lies on the card: the driver's descriptors are no files in memory."""
    return not stat.S_ISREG(os.fstat(fd).st_mode)
