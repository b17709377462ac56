"""Whether an exception says that memory was full, the GPU's or the host's.

The grader asks it of the reference's exceptions, too. So nothing is imported here that only a candidate's process needs.
"""

from __future__ import annotations

import re

import torch

# The runtime refused a context or an allocation; or a library could not make its handle; or PyTorch's allocator wanted to
# list the users of the memory, asked NVML, which is not in the jail, and raised an assertion (pytorch issue 112377).
_GPU_IS_FULL = re.compile(
    r"[oO]ut of memory|cudaErrorMemoryAllocation|STATUS_ALLOC_FAILED|CUBLAS_STATUS_NOT_INITIALIZED when calling .cublasCreate"
    r"|NVML_SUCCESS ==.*CUDACachingAllocator",
    re.DOTALL,
)


def lacked_memory(error: BaseException) -> str | None:
    """Whose memory ran out, `gpu` or `host`; None for every other failure."""
    text = str(error)
    if isinstance(error, MemoryError) or "can't allocate memory" in text:
        return "host"
    if isinstance(error, torch.OutOfMemoryError):
        return "gpu"
    return "gpu" if isinstance(error, RuntimeError) and _GPU_IS_FULL.search(text) else None
