"""Whose memory ran out, as an exception in the candidate's process tells it."""

from __future__ import annotations

import pytest
import torch

from dice.kernels.candidate.full_memory import lacked_memory

NVML = (
    'NVML_SUCCESS == DriverAPI::get()->nvmlInit_v2_() INTERNAL ASSERT FAILED at "/pytorch/c10/cuda/'
    'CUDACachingAllocator.cpp":1123, please report a bug to PyTorch.'
)


@pytest.mark.parametrize(
    ("error", "whose"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1024.00 GiB."), "gpu"),
        (RuntimeError("CUDA error: out of memory"), "gpu"),
        (RuntimeError(NVML), "gpu"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), "gpu"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"), "gpu"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm(...)`"), None),
        (MemoryError(), "host"),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory"), "host"),
        (RuntimeError('handles_.at(i) == 0 INTERNAL ASSERT FAILED at "CUDACachingAllocator.cpp":9'), None),
        (ValueError(NVML.replace("CUDACachingAllocator", "other")), None),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), None),
    ],
)
def test_lack_of_memory_is_told_from_other_errors(error: BaseException, whose: str | None) -> None:
    assert lacked_memory(error) == whose
