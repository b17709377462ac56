"""Names of CUDA's and PyTorch's headers that the CPU back end serves with one header of its own (csrc/cpu/include)."""

from __future__ import annotations

from pathlib import Path

from dice.kernels.builder.compiler import Meter
from dice.kernels.builder.headers import source_digest
from dice.kernels.builder.precompiled import Precompiled, write_files

NAMES = {
    "ATen/cuda/CUDAContext.h": "ATen/cuda/CUDAContextLight.h",
    "ATen/cudnn/Handle.h": (
        "ATen/cudnn/Exceptions.h ATen/cudnn/Handles.h ATen/cudnn/Types.h ATen/cudnn/Utils.h ATen/cudnn/cudnn-wrapper.h"
    ),
    "cooperative_groups.h": "cooperative_groups/memcpy_async.h cooperative_groups/reduce.h cooperative_groups/scan.h",
    "cub/cub.cuh": (
        "cub/block/block_reduce.cuh cub/block/block_scan.cuh cub/device/device_radix_sort.cuh "
        "cub/device/device_reduce.cuh cub/device/device_scan.cuh cub/device/device_segmented_reduce.cuh "
        "cub/warp/warp_reduce.cuh cub/warp/warp_scan.cuh"
    ),
    "cublas_v2.h": "cublas.h cublas_api.h",
    "cuda_runtime_api.h": (
        "builtin_types.h channel_descriptor.h cuda_device_runtime_api.h cuda_profiler_api.h cuda_runtime.h "
        "device_atomic_functions.h device_functions.h device_launch_parameters.h driver_types.h host_defines.h "
        "math_functions.h sm_20_atomic_functions.h vector_functions.h vector_types.h"
    ),
    "dice_cpu/torch_cuda.h": (
        "ATen/cuda/ApplyGridUtils.cuh ATen/cuda/CUDADevice.h ATen/cuda/CUDAEvent.h ATen/cuda/CUDAUtils.h "
        "ATen/cuda/CachingHostAllocator.h ATen/cuda/Sleep.h c10/cuda/CUDACachingAllocator.h "
        "c10/cuda/CUDADeviceAssertion.h c10/cuda/CUDADeviceAssertionHost.h c10/cuda/CUDAEvent.h "
        "c10/cuda/CUDAException.h c10/cuda/CUDAFunctions.h c10/cuda/CUDAGuard.h c10/cuda/CUDAMacros.h "
        "c10/cuda/CUDAMiscFunctions.h c10/cuda/CUDAStream.h"
    ),
    "thrust/dice_thrust.h": (
        "thrust/adjacent_difference.h thrust/binary_search.h thrust/copy.h thrust/count.h thrust/device_ptr.h "
        "thrust/device_vector.h thrust/execution_policy.h thrust/extrema.h thrust/fill.h thrust/for_each.h "
        "thrust/functional.h thrust/gather.h thrust/host_vector.h thrust/inner_product.h "
        "thrust/iterator/counting_iterator.h thrust/iterator/transform_iterator.h thrust/logical.h thrust/pair.h "
        "thrust/reduce.h thrust/remove.h thrust/replace.h thrust/reverse.h thrust/scan.h thrust/scatter.h "
        "thrust/sequence.h thrust/sort.h thrust/swap.h thrust/transform.h thrust/transform_reduce.h thrust/tuple.h "
        "thrust/unique.h"
    ),
}
"""Our header -> the other names that sources include it by."""


def alias_folder(precompiled: Precompiled) -> Path:
    """A folder in which each of the other names is a header that includes ours."""
    return precompiled.artefact(f"cpu-aliases-{source_digest('cpu_aliases.py')}", _make)


def _make(out: Path, _: Meter) -> None:
    write_files(
        out,
        ((name, f"#pragma once\n#include <{header}>\n") for header, names in NAMES.items() for name in names.split()),
    )
