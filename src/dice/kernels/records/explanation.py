"""What the author of one kernel wants to know besides its verdict (`judging.explain`)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class Mismatch(_Part):
    """Where an output differs from the reference's: the first tensor that does."""

    where: str
    """`output`, `output[1]`, ..."""
    shape: list[int]
    dtype: str
    total: int
    """Elements."""
    wrong: int
    """Elements beyond the tolerance of the protocol."""
    unwritten: int
    """Wrong elements that still hold the pattern that the verifier fills fresh memory with."""
    first: list[int]
    """Index of the first wrong element."""
    expected: str
    got: str
    lowest: list[int]
    """Smallest index of a wrong element, by dimension."""
    highest: list[int]
    """Largest index of a wrong element, by dimension."""
    remarks: list[str]
    """What the wrong values and their places look like, in plain words."""
    rows_per_cell: int
    columns_per_cell: int
    picture: list[str]
    """The output as a matrix (leading dimensions together, last dimension), a character a cell: `.` right, `+` some wrong,
    `#` all wrong, `?` what is wrong was never written."""


class Work(_Part):
    """What one call has to do at least, by the reference's tensors and operators."""

    bytes: int
    """Inputs, state and outputs, each moved once."""
    flop: int | None
    """Of matrix products, convolutions and attention (torch.utils.flop_counter); other operators are not counted. None:
    the reference cannot be run without data."""


class Card(_Part):
    """What the GPU can do at most. None: PyTorch does not say."""

    bytes_per_s: float | None
    flop_per_s: float | None
    """fp32 multiply-adds outside of tensor cores, as two operations each."""


class KernelUse(_Part):
    """What one kernel uses of the GPU, from cuobjdump."""

    kernel: str
    registers: int
    """Of each thread."""
    shared_bytes: int
    """Static shared memory of each block."""
    local_bytes: int
    """Of each thread: spilled registers and arrays that are not in registers."""
    occupancy: dict[int, float]
    """Threads of a block -> the share of a multiprocessor's threads that can be resident, without dynamic shared memory."""


class Explanation(_Part):
    """All of it. What was not found out is None or empty."""

    mismatch: Mismatch | None = None
    orders_tried: bool = False
    """Whether its kernels ran in other orders of their threads, to find data races; CPU back end only."""
    work: Work | None = None
    card: Card | None = None
    kernels: list[KernelUse] = []
