"""The CPU back end: CUDA sources compiled by g++ compute what PyTorch computes, and say what they cannot do."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from cpu_fixtures import Load, close
from execution import job
from extension_samples import BUILT, REFUSED

from dice.kernels.builder.builder import Builder
from dice.kernels.candidate.extension_call import load_inline
from dice.kernels.candidate.extension_loader import kernels, load_extension
from dice.kernels.candidate.process import candidate_server
from dice.kernels.cpu.race import Turn, prove_race
from dice.kernels.cpu.runtime import CpuRuntime, Order
from dice.kernels.grader.executor import Executor
from dice.kernels.records.extension import BuildResult
from dice.kernels.records.job import Judging
from dice.kernels.sandbox.launch_ledger import PAGE_BYTES, LaunchLedger
from dice.kernels.sandbox.linux import map_shared


def build(cpu_builder: Builder, arguments: dict[str, Any], **more: Any) -> BuildResult:
    return cpu_builder.build(load_inline(name="sample", **arguments), **more)


@pytest.fixture(scope="session")
def execution(load: Load) -> ModuleType:
    return load("execution")


@pytest.fixture(scope="session")
def warps(load: Load) -> ModuleType:
    return load("warps")


@pytest.fixture(scope="session")
def libraries(load: Load) -> ModuleType:
    return load("libraries")


@pytest.fixture(scope="session")
def numerics(load: Load) -> ModuleType:
    return load("numerics")


def test_indices_of_threads_and_blocks(execution: ModuleType) -> None:
    nx, ny, nz = 11, 7, 5
    blocks = (nx + 7) // 8 + (ny + 3) // 4 + (nz + 1) // 2
    x, y, z = torch.arange(nx), torch.arange(ny)[:, None], torch.arange(nz)[:, None, None]
    assert torch.equal(execution.indices(nx, ny, nz).long(), x + 100 * y + 10000 * z + 1000000 * blocks)
    assert torch.equal(execution.arch(300).long(), torch.arange(300))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_tiled_product_with_barriers_in_a_loop(execution: ModuleType, dtype: torch.dtype) -> None:
    a, b = torch.randn(37, 50, dtype=dtype), torch.randn(50, 29, dtype=dtype)
    close(execution.matmul(a, b), a @ b)


def test_dynamic_shared_memory_of_several_types(execution: ModuleType) -> None:
    x = torch.randn(5, 1000)
    close(execution.row_sum(x), x.sum(1))
    for dtype in (torch.float32, torch.float64, torch.int32, torch.half, torch.bfloat16, torch.uint8):
        values = torch.arange(50).to(dtype)
        assert torch.equal(execution.reversed(values), values.flip(0))


def test_alignment_is_said_wherever_nvcc_takes_it(execution: ModuleType) -> None:
    assert execution.misaligned() == [0] * 8


def test_constant_memory_and_device_variables(execution: ModuleType) -> None:
    x = torch.randn(1000)
    before = execution.calls() if execution.polynomial(x, [0.0]) is not None else 0
    close(
        execution.polynomial(x, [1.0, 2.0, 3.0]), 1 + 2 * x + 3 * x * x + 3 + torch.tensor([1.0, 2, 4, 8]).repeat(250)
    )
    assert execution.calls() == before + 1


def test_every_way_to_launch_and_its_count(execution: ModuleType) -> None:
    runtime, ledger = CpuRuntime.loaded(), LaunchLedger()
    assert runtime is not None
    runtime.set_ledger(map_shared(ledger.fd, PAGE_BYTES))
    rows = execution.launches().view(12, 4)
    runtime.set_ledger(0)
    seen = ledger.read(kernels())
    assert rows[:, 0].tolist() == [1.0, 2.0, 0.5, 9.0, -1.0, 10.0, 18.0, -9.0, -2.5, 0.5, 2.0, 20.0]
    assert rows[9].tolist() == [0.5, 0.0, 0.0, 0.0]
    assert (seen.forged, seen.refused) == ("", {})
    assert seen.launches == {"put": 2, "put_c": 3, "put_default": 2, "put_n": 2, "put_twice": 4}


def test_launches_that_a_gpu_refuses_are_refused(execution: ModuleType) -> None:
    invalid_configuration, invalid_value = 9, 1
    expected = [*[invalid_configuration] * 7, invalid_value, 0, 0, 1, invalid_value, 1, 0]
    assert execution.refusals() == expected


def test_the_runtime_calls_that_candidates_make(execution: ModuleType) -> None:
    x = torch.randn(64)
    expected = x.clone()
    expected[:32] = 0
    assert torch.equal(execution.runtime_api(x), expected)


def test_lambdas_functors_packs_and_accessors(execution: ModuleType) -> None:
    x = torch.randn(300)
    close(execution.applied(x, 1.5), 3 * (x + 1.5))
    assert execution.packed_sum().tolist() == [6.5, 6.5]
    rows = torch.randn(6, 20)
    close(execution.accessed(rows), rows * torch.tensor([1.0, 2, 3, 4]).repeat(5))


@pytest.mark.parametrize(
    ("name", "arguments", "what"),
    [
        ("asserted", (torch.ones(10), 12), "device-side assert.*index in range"),
        ("asserted", (-torch.ones(10), 10), "__trap"),
        ("deadlocked", (torch.zeros(32, dtype=torch.int32),), "deadlock"),
    ],
)
def test_faults_are_errors_that_stay(execution: ModuleType, name: str, arguments: tuple[Any, ...], what: str) -> None:
    runtime = CpuRuntime.loaded()
    assert runtime is not None
    try:
        with pytest.raises(RuntimeError, match=what):
            getattr(execution, name)(*arguments)
        with pytest.raises(RuntimeError, match="by an earlier launch"):
            execution.packed_sum()
    finally:
        runtime.reset_errors()
    assert execution.packed_sum().tolist() == [6.5, 6.5]


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.half])
def test_shuffles(warps: ModuleType, dtype: torch.dtype) -> None:
    lane, first = torch.arange(64) % 32, torch.arange(64) // 32 * 32
    x = torch.randperm(64).to(dtype)

    def segment(source: Callable[[torch.Tensor, int], torch.Tensor], width: int) -> torch.Tensor:
        return x[first + lane // width * width + source(lane % width, width)]

    expected = [
        x[first + 5],
        x[first + torch.where(lane >= 3, lane - 3, lane)],
        x[first + torch.where(lane + 4 < 32, lane + 4, lane)],
        x[first + (lane ^ 9)],
        segment(lambda i, _: 0 * i + 2, 8),
        segment(lambda i, _: torch.where(i >= 2, i - 2, i), 16),
        segment(lambda i, w: torch.where(i + 1 < w, i + 1, i), 4),
        segment(lambda i, _: i ^ 1, 2),
    ]
    assert torch.equal(warps.shuffles(x), torch.stack(expected))


def test_reductions_by_warps_atomics_and_locks(warps: ModuleType) -> None:
    x = torch.randn(7, 200)
    close(warps.softmax(x), x.softmax(1))
    values = torch.randn(10000)
    for _ in range(2):  # its counter starts again
        close(warps.last_block_sum(values).reshape(()), values.sum(), 1e-3)
    counts = torch.randint(0, 9, (32,), dtype=torch.int32)
    assert torch.equal(warps.volatile_scan(counts).long(), counts.cumsum(0))
    assert int(warps.locked_count(10).flatten()[0]) > 0


def test_cooperative_groups(warps: ModuleType) -> None:
    x = torch.arange(200.0)
    given, reversed_ = warps.grid_sync(x)
    assert torch.equal(reversed_, (2 * torch.arange(200.0)).flip(0))
    assert torch.equal(given, reversed_ + 1)
    values = torch.randn(64)
    close(warps.groups(values)[0].view(2, 32)[:, 0], values.view(2, 32).sum(1))
    with pytest.raises(RuntimeError, match="cooperative"):
        warps.grid_sync_plain(values)
    runtime = CpuRuntime.loaded()
    assert runtime is not None
    runtime.reset_errors()


def test_a_tile_has_its_place_in_what_was_parted(warps: ModuleType) -> None:
    lane, warp = torch.arange(64) % 32, torch.arange(64) // 32
    whole, part, forgotten = warps.nested_tiles(64).long()
    assert torch.equal(whole, warp + 200)
    assert torch.equal(part, lane // 4 + 800)
    assert torch.equal(forgotten, part)


@pytest.mark.parametrize("kind", range(4))
@pytest.mark.parametrize("order", [Order.ASCENDING, Order.DESCENDING, Order.RANDOM])
def test_a_warp_may_wait_for_a_flag_of_another(warps: ModuleType, kind: int, order: Order) -> None:
    runtime = CpuRuntime.loaded()
    assert runtime is not None
    runtime.set_order(order)
    try:
        for waiting in (0, 1):
            assert warps.flag(kind, waiting)[1:].tolist() == [1.0] * 32
    finally:
        runtime.set_order(Order.ASCENDING)


def test_mathematical_functions(numerics: ModuleType) -> None:
    x = torch.randn(200) * 2
    ours, v, p = numerics.floats(x), x.double(), x.double().abs() + 0.1
    special = torch.special
    expected = {
        0: v.exp(),
        1: p.log(),
        2: p.rsqrt(),
        4: v.clamp(0, 1),
        5: special.erf(v) + special.erfc(v) + special.erfinv(v.tanh() * 0.99),
        7: p**1.5 + 2 * p**2,
        9: torch.sin(math.pi * v) + torch.cos(math.pi * v),
        14: 10 ** (v * 0.1) + 2**v + v.expm1() + p.log1p() + p.log2() * 2 + p.log10() + 1,
    }
    for row, values in expected.items():
        close(ours[row], values, 3e-5)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.half, 2e-2), (torch.bfloat16, 2e-2)):
        values = torch.randn(1000).to(dtype)
        close(numerics.gelu(values), F.gelu(values.float()), tolerance)


def test_values_that_rounding_twice_would_change(numerics: ModuleType) -> None:
    below, above = 1 - 2.0**-24, 1 + 2.0**-23
    expected = {
        0: math.nan, 1: math.nan, 2: 0.125, 3: above, 4: below, 5: -above, 6: above, 7: 1 - 2.0**-53,
        8: 1 + 2.0**-51 + 2.0**-52, 9: 1.0, 10: 1 - 2.0**-53, 11: 1 + 2.0**-52, 12: sys.float_info.max,
        13: 2.0**60 - 2.0**36, 14: 1 + 2.0**-10, 15: 1 + 2.0**-7, 16: 2.0**24 + 2.0**17, 17: 2.0**60 - 2.0**52,
        18: 2.0**31 + 2.0**24, 19: math.nan, 20: 255 * 1000 - 128, 21: -5, 22: 16000,
    }  # fmt: skip
    found = numerics.edges().tolist()
    assert {row: found[row] for row in expected} == pytest.approx(expected, rel=0, abs=0, nan_ok=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.half])
@pytest.mark.parametrize("transposed", [False, True])
def test_cublas(libraries: ModuleType, dtype: torch.dtype, transposed: bool) -> None:
    a, b, c = torch.randn(7, 5).to(dtype), torch.randn(5, 6).to(dtype), torch.randn(7, 6).to(dtype)
    left, right = (a.t().contiguous(), b.t().contiguous()) if transposed else (a, b)
    ours = libraries.gemm(left, right, transposed, transposed, 1.5, 0.25, c)
    close(ours, 1.5 * (a.double() @ b.double()) + 0.25 * c.double(), 2e-2 if dtype == torch.half else 1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.half, torch.bfloat16, torch.int32])
def test_cudnn_fills_a_tensor_with_a_value_of_its_type(libraries: ModuleType, dtype: torch.dtype) -> None:
    value = torch.tensor([3, 7], dtype=dtype)
    assert torch.equal(
        libraries.filled(torch.zeros(2, 3, 2, 2, dtype=dtype), value), torch.full((2, 3, 2, 2), 3, dtype=dtype)
    )


def test_cublaslt_cudnn_and_wmma(libraries: ModuleType) -> None:
    x, w, bias = torch.randn(8, 16), torch.randn(12, 16), torch.randn(12)
    for activation, expected in enumerate((F.linear(x, w, bias), F.linear(x, w, bias).relu())):
        close(libraries.linear(x, w, bias, activation), expected)
    image, kernel = torch.randn(2, 4, 9, 11), torch.randn(6, 2, 3, 3)
    close(libraries.convolution(image, kernel, 1, 2, 2), F.conv2d(image, kernel, None, 2, 1, 1, 2))
    scale, shift, mean, variance = torch.randn(4), torch.randn(4), torch.randn(4), torch.rand(4) + 0.5
    outputs = libraries.neural(image, scale, shift, mean, variance)
    close(outputs[1], image.softmax(1))
    close(outputs[2], F.batch_norm(image, mean, variance, scale, shift))
    a, b = torch.randn(32, 48).half(), torch.randn(16, 48).half()
    close(libraries.tensor_cores(a, b), 2 * (a.float() @ b.float().t()), 1e-2)


def test_cub_and_thrust(libraries: ModuleType) -> None:
    rows, values = torch.randn(5, 100), torch.randn(1000)
    sums, scans, *_ = libraries.cub_blocks(rows)
    close(sums, rows.sum(1))
    close(scans, rows.cumsum(1))
    few = values[:190]
    with_own, before, totals = libraries.cub_arrays(few)
    close(with_own, few.cumsum(0), 1e-4)
    close(before, few.cumsum(0) - few, 1e-4)
    close(totals, few.sum().expand(2), 1e-4)
    outputs = libraries.device_algorithms(values)
    close(outputs[1], values.cumsum(0), 1e-3)
    assert torch.equal(outputs[2], values.sort(descending=True)[0])
    assert libraries.largest(values.bfloat16()).tolist() == [float(values.bfloat16().max()), 1000.0]


def test_a_function_may_be_called_as_one_of_cudas(load: Load) -> None:
    vector = torch.randn(3, dtype=torch.float64)
    length = vector.norm()
    close(load("named_norm").norm(vector), torch.stack([length, 1 / length]))


# One source per group: what a few of the samples for the CUDA routes do here.
@pytest.mark.parametrize(
    "name",
    ["plain", "PYBIND11_MODULE by hand", "device lambda", "managed variable", "a parameter that hides CUDA's dim3"],
)
def test_samples_build_and_run(cpu_builder: Builder, name: str) -> None:
    result = build(cpu_builder, BUILT[name])
    if result.status == "unsupported_on_cpu":
        assert result.message.startswith("unsupported_on_cpu: ")
        return
    assert result.status == "built", result.message
    module = load_extension(result.path or "", "sample")
    assert isinstance(module, ModuleType)
    x = torch.randn(8)
    assert module.run(x).shape == x.shape


@pytest.mark.parametrize(
    "name", ["function that is not declared", "missing semicolon", "unknown header", "load of PyTorch's half past L1"]
)
def test_what_does_not_compile_is_the_candidates_error(cpu_builder: Builder, name: str) -> None:
    result = build(cpu_builder, REFUSED[name])
    assert (result.status, result.route) == ("compile_error", "cpu")
    assert "error" in result.message


def test_what_the_cpu_lacks_is_named(cpu_builder: Builder) -> None:
    source = BUILT["plain"]["cuda_sources"].replace("{\n    auto", "{\n    cufftHandle plan;\n    auto")
    result = build(cpu_builder, BUILT["plain"] | {"cuda_sources": source})
    assert (result.status, result.message) == ("unsupported_on_cpu", "unsupported_on_cpu: cufftHandle")
    source = "__global__ void unused(cudaTextureObject_t image, float* out) { *out = tex1Dfetch<float>(image, 0); }\n"
    result = build(cpu_builder, BUILT["plain"] | {"cuda_sources": source + BUILT["plain"]["cuda_sources"]})
    assert (result.status, result.message) == ("unsupported_on_cpu", "unsupported_on_cpu: cudaTextureObject_t")


KERNEL = """__global__ void k(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.numel();
    k<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""
# Each edit of KERNEL breaks C++ or CUDA itself, though the CPU back end fails for a reason of its own; its twin beside it
# uses what only this back end lacks.
PAIRS = {
    "a bracket": (("in[i];\n}", "in[i];\n"), ("int n = x", "cusparseHandle_t h; int n = x")),
    "a parenthesis": (("x.numel()", "x.numel("), ("int n = x", "cufftHandle h; int n = x")),
    "a string": (("int n = x", 'printf("n = x'), ("int n = x", 'printf("n"); cusolverDnHandle_t h; int n = x')),
    "a launch": (("256>>>", "256>>"), ("int n = x", "CUmodule h; int n = x")),
    "a configuration": ((", 256>>>", ",>>>"), ("int n = x", "curandGenerator_t h; int n = x")),
    "a name of PyTorch's": (
        ("int n = x", "auto s = at::cuda::getNoSuchStream(); int n = x"),
        ("int n = x", "auto s = at::cuda::getCurrentCUDASparseHandle(); int n = x"),
    ),
    "a kernel's type": (("__global__ void", "__global__ int"), ("int n = x", "ncclComm_t h; int n = x")),
}


def test_a_name_of_a_header_that_is_not_included_is_the_candidates_error(cpu_builder: Builder) -> None:
    source = KERNEL.replace("int n = x", "auto s = at::cuda::getCurrentCUDAStream(); int n = x")
    request = {"cpp_sources": "torch::Tensor run(torch::Tensor x);", "functions": ["run"]}
    include = "#include <torch/extension.h>\n"
    assert build(cpu_builder, request | {"cuda_sources": include + source}).status == "compile_error"
    include += "#include <ATen/cuda/CUDAContext.h>\n"
    assert build(cpu_builder, request | {"cuda_sources": include + source}).status == "built"


@pytest.mark.parametrize("name", PAIRS)
def test_an_error_of_c_plus_plus_is_not_a_lack_of_the_back_end(cpu_builder: Builder, name: str) -> None:
    (old, new), (twin_old, twin_new) = PAIRS[name]
    request = {"cpp_sources": "torch::Tensor run(torch::Tensor x);", "functions": ["run"]}
    include = "#include <torch/extension.h>\n#include <ATen/cuda/CUDAContext.h>\n"
    assert KERNEL.count(old) == KERNEL.count(twin_old) == 1
    broken = build(cpu_builder, request | {"cuda_sources": include + KERNEL.replace(old, new)})
    assert broken.status == "compile_error", broken.message
    assert "error" in broken.message
    twin = build(cpu_builder, request | {"cuda_sources": include + KERNEL.replace(twin_old, twin_new)})
    assert twin.status == "unsupported_on_cpu", twin.message


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({}, "compile_error"),
        ({"extra_cuda_cflags": ["-Dclosing=x"]}, "unsupported_on_cpu"),
        ({"extra_include_paths": ["headers"]}, "unsupported_on_cpu"),
    ],
)
def test_an_open_bracket_is_the_candidates_error_where_nothing_of_its_own_may_close_it(
    cpu_builder: Builder, more: dict[str, Any], status: str
) -> None:
    source = "#include <torch/extension.h>\n__global__ void k(floaty(v, float* out) { out[0] = v; }"
    result = build(cpu_builder, {"cpp_sources": "", "cuda_sources": source, "functions": []} | more)
    found = "unsupported_on_cpu" if "unsupported_on_cpu" in result.message else result.status
    assert found == status, result.message
    assert (status == "compile_error") == ("a bracket here has no partner" in result.message)


def test_a_standard_that_pytorch_refuses_is_the_candidates_error(cpu_builder: Builder) -> None:
    request = BUILT["plain"] | {"extra_cuda_cflags": ["-std=c++14"]}
    assert build(cpu_builder, request).status == "compile_error"
    assert build(cpu_builder, BUILT["plain"] | {"extra_cuda_cflags": ["-std=c++17"]}).status == "built"


# g++ takes nvcc's flag with one hyphen for `-u se_fast_math`, which is the linker's.
@pytest.mark.parametrize(
    ("flags", "status"),
    [
        ({"extra_cflags": ["-O3", "--use_fast_math"]}, "compile_error"),
        ({"extra_cflags": ["-fno-such-flag"]}, "compile_error"),
        ({"extra_cflags": ["-O3", "-use_fast_math"]}, "built"),
        ({"extra_cuda_cflags": ["-O3", "--use_fast_math"]}, "built"),
        ({"extra_cflags": ["-DNDEBUG"], "extra_cuda_cflags": ["-DNDEBUG"]}, "built"),
        ({"extra_cuda_cflags": ["-DC10_USE_GLOG"]}, "unsupported_on_cpu"),
        ({"extra_cflags": ["-fno-plt"]}, "unsupported_on_cpu"),
        ({"extra_cuda_cflags": ["--no-such-flag"]}, "unsupported_on_cpu"),
    ],
)
def test_a_flag_that_gcc_refuses_is_the_candidates_error(
    cpu_builder: Builder, flags: dict[str, Any], status: str
) -> None:
    result = build(cpu_builder, BUILT["plain"] | flags)
    assert result.status == status, result.message
    assert status != "compile_error" or "unrecognized command-line option" in result.message


def test_a_cached_build_says_what_it_did_cost(build_folder: Path, cpu_builder: Builder) -> None:
    first = build(cpu_builder, BUILT["plain"])
    second = build(Builder(build_folder, "cpu"), BUILT["plain"])
    assert second.cached
    assert second.cpu_seconds == first.cpu_seconds > 0
    assert (second.key, second.route) == (first.key, "cpu")


RACE = """
#include <torch/extension.h>
__global__ void neighbours(const float* x, float* y) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    float other = s[63 - threadIdx.x];
    BARRIER
    s[threadIdx.x] = other;
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x];
}
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    neighbours<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>());
    return y;
}
"""


@pytest.mark.parametrize(("barrier", "racy"), [("", True), ("__syncthreads();", False)])
def test_a_race_is_proven_by_the_order_of_threads(cpu_builder: Builder, barrier: str, racy: bool) -> None:
    source = RACE.replace("BARRIER", barrier)
    result = build(cpu_builder, BUILT["plain"] | {"cuda_sources": source})
    module = load_extension(result.path or "", "sample")
    runtime = CpuRuntime.loaded()
    assert isinstance(module, ModuleType)
    assert runtime is not None
    x = torch.randn(64)

    def forward(turn: Turn) -> torch.Tensor:
        runtime.set_order(turn.order, turn.seed, turn.kernel)
        return module.run(x)

    try:
        race = prove_race(forward, ["neighbours"], torch.equal)
    finally:
        runtime.set_order(Turn().order)
    assert (race is not None) == racy
    assert race is None or "data race in kernel neighbours" in race.message


@pytest.mark.parametrize("period", range(1, 6))
def test_results_kept_from_earlier_calls_are_no_race(period: int) -> None:
    """Addresses that come again after so many calls, each with a result of its own, whatever the order of threads."""
    for kept in itertools.product([0.0, 1.0], repeat=period):
        results = itertools.cycle(kept)
        assert prove_race(lambda turn, results=results: next(results), ["k"], float.__eq__) is None


def test_a_result_that_follows_the_order_is_a_race() -> None:
    race = prove_race(lambda turn: float(turn.order is Order.DESCENDING), ["j", "k"], float.__eq__)
    assert race is not None
    assert "kernel j" in race.message


SHARED_SUM = """
#include <torch/extension.h>
static thread_local int calls = 0;
__global__ void sums(const float* x, float* y) {
    __shared__ float total;
    START
    atomicAdd(&total, x[blockIdx.x * 64 + threadIdx.x]);
    __syncthreads();
    y[blockIdx.x * 64 + threadIdx.x] = total;
    __syncthreads();
    if (threadIdx.x == 0) total = 0.f;
}
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    sums<<<x.numel() / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>());
    return y + 0 * ++calls;
}
"""


@pytest.mark.parametrize(
    ("start", "sound"), [("", False), ("if (threadIdx.x == 0) total = 0.f; __syncthreads();", True)]
)
def test_shared_memory_that_is_read_before_it_is_written_is_nan_in_poisoned_order(
    cpu_builder: Builder, start: str, sound: bool
) -> None:
    result = build(cpu_builder, BUILT["plain"] | {"cuda_sources": SHARED_SUM.replace("START", start)})
    module = load_extension(result.path or "", "sample")
    runtime = CpuRuntime.loaded()
    assert isinstance(module, ModuleType)
    assert runtime is not None
    x = torch.randn(128, 64)
    right = x.sum(1, keepdim=True).expand(128, 64)
    torch.testing.assert_close(module.run(x), right, rtol=1e-4, atol=1e-4)
    try:
        runtime.set_order(Order.POISONED)
        poisoned = module.run(x)
    finally:
        runtime.set_order(Order.ASCENDING)
    assert bool(poisoned.isnan().any()) != sound
    torch.testing.assert_close(
        module.run(x), right, rtol=1e-4, atol=1e-4
    )  # nothing stays behind, host variables included


CANDIDATE = """
import torch
from torch.utils.cpp_extension import load_inline

CUDA = '''
#include <torch/extension.h>
__global__ void doubled(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = FACTOR * x[i];
}
torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    doubled<<<(x.numel() + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
    return y;
}
'''
try:
    extension = load_inline("doubling", "torch::Tensor run(torch::Tensor x);", CUDA, functions=["run"])
except RuntimeError:
    extension = None


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x * 2 if extension is None else extension.run(x)
"""
DOUBLING = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs():
    return [torch.randn(4, 100)]


def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("factor", "status", "loaded"), [("2", "correct", 1), ("3", "wrong_value", 1), ("undeclared", "deceptive", 0)]
)
def test_a_verdict_says_how_its_extension_was_built(
    cpu_builder: Builder, factor: str, status: str, loaded: int
) -> None:
    cpu_builder.prepare()
    judging = Judging(correctness_trials=2, measure_time=False)
    with (
        candidate_server(visible=cpu_builder.visible_folders()) as fork_server,
        Executor(fork_server, cpu_builder, "cpu", judging=judging) as executor,
    ):
        verdict = executor.verify(job(CANDIDATE.replace("FACTOR", factor), problem=DOUBLING))[0]
    assert verdict.status == status, verdict.message
    assert verdict.build is not None
    assert (verdict.build.path, verdict.build.extensions, verdict.build.loaded) == (
        "cpu",
        1,
        loaded,
    )
    assert verdict.build.cpu_seconds > 0
    assert status != "correct" or verdict.launches == {"doubled": 1}


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("y[i] = 2 * x[i] + none; __syncthreads(); none = 0;", "deceptive"),
        ("none = 0; __syncthreads(); y[i] = 2 * x[i] + none;", "correct"),
    ],
)
def test_strict_asks_what_shared_memory_held_before(cpu_builder: Builder, line: str, status: str) -> None:
    cpu_builder.prepare()
    judging = Judging(correctness_trials=2, measure_time=False, protocols=("strict",))
    code = CANDIDATE.replace("y[i] = FACTOR * x[i];", f"{{ __shared__ float none; {line} }}")
    with (
        candidate_server(visible=cpu_builder.visible_folders()) as fork_server,
        Executor(fork_server, cpu_builder, "cpu", judging=judging) as executor,
    ):
        verdict = executor.verify(job(code, problem=DOUBLING))[0]
    assert verdict.status == status, verdict.message
    assert verdict.functional_status == "correct"
    assert ("unstable_output" in [finding.name for finding in verdict.deception]) == (status == "deceptive")


def test_the_macros_of_nvcc_are_defined(cpu_builder: Builder) -> None:
    names = "__NVCC__ __CUDACC__ __CUDACC_VER_BUILD__ __CUDACC_RELAXED_CONSTEXPR__ __CUDA_API_VER_MAJOR__ __CUDA_ARCH_LIST__"
    names += " __NVCC_DIAG_PRAGMA_SUPPORT__ __CUDACC_DEVICE_ATOMIC_BUILTINS__ CUDART_VERSION __CUDART_API_VERSION __CUDA_RUNTIME_H__"  # noqa: E501
    lines = [f"#ifndef {name}\n#error {name} is missing\n#endif" for name in names.split()]
    lines.append("#ifdef __CUDACC_EXTENDED_LAMBDA__\n#error nobody asked for it\n#endif")
    lines += ["__global__ void k(float* x) { x[0] = 1; }", "void f(at::Tensor x) { k<<<1, 1>>>(x.data_ptr<float>()); }"]
    arguments = {"cpp_sources": "void f(at::Tensor x);", "cuda_sources": "\n".join(lines), "functions": ["f"]}
    assert build(cpu_builder, arguments).path is not None
    asked = {**arguments, "extra_cuda_cflags": ["--extended-lambda"]}
    assert "nobody asked" in build(cpu_builder, asked).message


def test_a_host_function_in_a_kernel_is_the_candidates_error(cpu_builder: Builder) -> None:
    text = "int h(int a) { return a; }\n__global__ void k(float* x) { x[0] = h(1); }\nvoid f(at::Tensor x) { k<<<1, 1>>>(x.data_ptr<float>()); }"  # noqa: E501
    done = build(cpu_builder, {"cpp_sources": "void f(at::Tensor x);", "cuda_sources": text, "functions": ["f"]})
    assert done.status == "compile_error"
    assert 'calling a __host__ function("h") from a __global__ function("k") is not allowed' in done.message
