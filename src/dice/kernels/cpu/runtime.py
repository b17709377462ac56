"""The CPU back end's runtime library as loaded into this process, by ctypes: errors, the order of execution.

Used so:

    runtime = CpuRuntime.loaded()        # None while no CPU extension has been loaded
    runtime.take_error()                 # "cudaErrorAssert", as CudaRuntime says it; None without an error
    runtime.set_order(Order.DESCENDING, kernel="scan_kernel")
"""

from __future__ import annotations

import ctypes
import enum
import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from dice.errors import HarnessError
from dice.kernels.cpu import LIBRARY


class Order(enum.IntEnum):
    """The order in which blocks, warps and threads run. A program without a race gives the same result in each."""

    ASCENDING = 0
    DESCENDING = 1
    RANDOM = 2
    POISONED = 3
    """Ascending, with NaN in shared memory at the start of each block. It changes only programs that read shared memory
    that they have not written."""
    FENCED = 4
    """Ascending, with 3.4e38 in shared memory at the start of each block, which no maximum leaves out as it does NaN. Behind
    the dynamic part lies the same, and a block that writes there ends with an error."""


STEP_CLASSES = 256
"""As kStepClasses in csrc/cpu/runtime/control.h, and the length in `dice.kernels.sandbox.replies.Steps`."""
_OFFSET_BITS = 20
"""Of a path: the byte where an address stood, and one more (kOffsetBits in csrc/cpu/runtime/arguments.cpp)."""


class _KeptPiece(ctypes.Structure):
    _fields_ = [
        ("moment", ctypes.c_uint64),
        ("path", ctypes.c_uint64),
        ("address", ctypes.c_void_p),
        ("bytes", ctypes.c_void_p),
        ("size", ctypes.c_uint64),
        ("whole", ctypes.c_int),
    ]


KEPT_PIECE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t, ctypes.POINTER(_KeptPiece))
"""Writes piece i; 0 behind the last."""
LOOK = ctypes.CFUNCTYPE(None)
AFTER_LAUNCHES = ctypes.CFUNCTYPE(None, LOOK)
"""Takes a function that is called after each launch."""


@dataclass(frozen=True)
class KeptPiece:
    """A copy of an argument of a launch, or of memory that it leads to."""

    moment: int
    """2 i before launch i, 2 i + 1 after it; even and odd numbers in their order where several objects launch."""
    path: int
    """Which argument, and where in it, and in the memory behind it, the address stands; unlike for all of a moment."""
    address: int
    """Where it stood; 0: the argument itself."""
    whole: bool
    """Whether it ends where its allocation ends."""
    data: torch.Tensor
    """The copy, uint8, in the library's memory."""

    @property
    def stood_in(self) -> tuple[int, int] | None:
        """The path of the piece of memory in which the address stood, and the byte behind it there; None where it stood in
        an argument."""
        behind = self.path % (1 << _OFFSET_BITS)
        return (self.path - behind, behind - 1) if behind else None


class _Control(ctypes.Structure):
    """The library's functions for its loader (csrc/cpu/runtime/control.h has the same layout)."""

    _fields_ = [
        ("set_ledger", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("enable", ctypes.CFUNCTYPE(None, ctypes.c_int)),
        ("set_order", ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_uint64, ctypes.c_char_p)),
        ("fault_text", ctypes.CFUNCTYPE(ctypes.c_char_p)),
        ("reset_errors", ctypes.CFUNCTYPE(None)),
        ("keep_arguments", ctypes.CFUNCTYPE(None, ctypes.c_size_t, ctypes.c_size_t)),
        ("kept_piece", KEPT_PIECE),
        ("after_launches", AFTER_LAUNCHES),
        ("guard_memory", ctypes.CFUNCTYPE(None, ctypes.c_int)),
        ("memory_fault", ctypes.CFUNCTYPE(ctypes.c_char_p)),
        ("steps_taken", ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint64))),
    ]


_controls: dict[int, _Control] = {}
"""By the library's handle: the library gives them once, to the first caller, which must not be a candidate."""


class CpuRuntime:
    """Functions of the loaded library. Make it with `loaded` or `load`."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        library.dice_cpu_error_name.restype = ctypes.c_char_p
        if library._handle not in _controls:
            library.dice_cpu_control.restype = ctypes.POINTER(_Control)
            given = library.dice_cpu_control()
            if not given:
                raise HarnessError("Somebody else has taken the controls of the CPU back end's runtime.")
            _controls[library._handle] = given.contents
        self.control = _controls[library._handle]

    @classmethod
    def loaded(cls) -> CpuRuntime | None:
        """The library if something in this process has loaded it, else None."""
        try:
            library = ctypes.CDLL(LIBRARY, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
        except OSError:
            return None
        return cls(library)

    @classmethod
    def load(cls, path: Path) -> CpuRuntime:
        """Load it from `path`, so that extensions loaded later find it by its name. Raises OSError."""
        return cls(ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_GLOBAL))

    def take_error(self) -> str | None:
        """CUDA's name of the error of an earlier call, which is cleared where CUDA allows it; None without an error."""
        code = self._library.dice_cpu_last_error(1)
        return self._library.dice_cpu_error_name(code).decode() if code else None

    def fault(self) -> str:
        """What the last failed kernel did and where; empty when none failed."""
        return self.control.fault_text().decode()

    def reset_errors(self) -> None:
        """Forget all errors, sticky ones too, as a new process would."""
        self.control.reset_errors()

    def set_ledger(self, address: int) -> None:
        """Mark launches in the page of `dice.kernels.sandbox.launch_ledger` at this address; 0: nowhere."""
        self.control.set_ledger(address or None)

    def enable(self, on: bool) -> None:
        """Let launches through, as at first, or make them do nothing and succeed."""
        self.control.enable(int(on))

    def set_order(self, order: Order, seed: int = 1, kernel: str = "") -> None:
        """Order for kernels named `kernel`, ascending for all others; for all kernels when `kernel` is empty."""
        self.control.set_order(int(order), seed, kernel.encode())

    def guard_memory(self, on: bool) -> None:
        """From here on, memory of tensors and of cudaMalloc ends where nothing may be read or written (SIGSEGV)."""
        self.control.guard_memory(int(on))

    def take_memory_fault(self) -> str:
        """Which block was written to outside of its ends without ending the process; "" where none was."""
        return self.control.memory_fault().decode()

    def steps_taken(self) -> list[int]:
        """Steps so far of all code that was built to count them (`ExtensionRequest.counts_steps`), by where it lies."""
        steps = (ctypes.c_uint64 * STEP_CLASSES)()
        self.control.steps_taken(steps)
        return list(steps)


def kept_pieces(piece: Callable[[int, Any], int], begin: int = 0) -> Iterator[KeptPiece]:
    """All pieces, from one on, that a function of type KEPT_PIECE gives."""
    one = _KeptPiece()
    for i in itertools.count(begin):
        if not piece(i, ctypes.byref(one)):
            return
        if one.size:
            data = torch.frombuffer((ctypes.c_uint8 * one.size).from_address(one.bytes), dtype=torch.uint8)
            yield KeptPiece(one.moment, one.path, one.address or 0, bool(one.whole), data)
