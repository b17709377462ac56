"""Sources rewritten for the CPU: edits, device code, and host code that asks for a tensor's device."""

from __future__ import annotations

import pytest
from cuda_soup import REDUCTION, TILES

from dice.kernels.cpu.edits import Edits
from dice.kernels.cpu.host_rewrite import rewrite_host
from dice.kernels.cpu.regions import DeviceCode, find_regions
from dice.kernels.cpu.rewrite import rewrite_cuda
from dice.kernels.cpu.unsupported import UnsupportedOnCpu
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.lexer import SplitRefused

# ---- edits


def test_edits_are_made_at_once() -> None:
    edits = Edits("abcdef")
    edits.replace(4, 6, "EF!")
    edits.insert(1, "1")
    edits.insert(1, "2")
    edits.replace(1, 2, "")
    edits.insert(0, "<")
    edits.insert(6, ">")
    assert edits.apply() == "<a12cdEF!>"
    assert edits.text == "abcdef"
    assert Edits("").apply() == ""


def test_edits_of_one_place_are_refused() -> None:
    edits = Edits("abcdef")
    edits.replace(1, 4, "x")
    edits.insert(4, "y")
    assert edits.apply() == "axyef"
    edits.replace(3, 5, "z")
    with pytest.raises(SplitRefused, match="overlapping"):
        edits.apply()


# ---- device code


def regions(text: str) -> list[tuple[str, str]]:
    return [(region.kind, region.name) for region in find_regions(CudaSource(text))]


def test_the_device_code_of_sources() -> None:
    assert regions(REDUCTION) == [("device", "block_sum"), ("kernel", "row_sums")]
    assert regions(TILES) == [("device", "clear"), ("device", "value_of"), ("kernel", "multiply")]
    source = CudaSource(REDUCTION)
    found = find_regions(source)
    device = DeviceCode(found)
    assert REDUCTION[found[0].start] == "{"
    assert REDUCTION[found[0].end - 1] == "}"
    assert REDUCTION.index("__shared__") in device
    assert REDUCTION.index("sum +=") in device
    assert found[0].start not in device  # the head, its bracket included, is outside
    assert found[0].start + 1 in device
    assert found[0].end not in device
    assert REDUCTION.index("CHECK(x);") not in device
    assert 0 not in device
    assert {"threadIdx", "value", "T", "block_sum"} <= found[0].words
    nested = "__global__ void k() { auto f = [](int i) { return threadIdx.x; }; after(); }"
    assert nested.index("after") in DeviceCode(find_regions(CudaSource(nested)))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("void f() { }", []),
        ("__host__ __device__ int f() { return 1; }", [("device", "f")]),
        ("C10_HOST_DEVICE int f() { return 1; }", [("device", "f")]),
        ("#define API __device__ inline\nAPI int f() { return 1; }", [("device", "f")]),
        ("#define API inline\nAPI int f() { return 1; }", []),
        ("__device__ int f();", []),
        (
            "struct A { __device__ ~A() { } __device__ A operator+(A a) { } };",
            [("device", "A"), ("device", "operator")],
        ),
        ("__global__ void k() { auto f = [](int i) { return threadIdx.x; }; }", [("kernel", "k"), ("lambda", "")]),
        ("__global__ void k() { auto f = [n]() { return blockIdx.x; }; }", [("kernel", "k"), ("lambda", "")]),
        ("__global__ void k() { auto f = [&](int i) { return threadIdx.x; }; }", [("kernel", "k")]),
        ("__global__ void k() { auto f = [=, &n] { return threadIdx.x; }; }", [("kernel", "k")]),
        ("__global__ void k() { auto f = [&n] { return threadIdx.x; }; }", [("kernel", "k"), ("lambda", "")]),
        ("__global__ void k() { auto f = [] { return 1; }; }", [("kernel", "k")]),
        ("void f() { auto g = [] { return threadIdx.x; }; }", []),
        ("__device__ void d() { } void f() { auto g = [] { return threadIdx.x; }; }", [("device", "d")]),
        (
            "void f() { g([=] __device__ (int i) { return [] { return threadIdx.x; }; }); }",
            [("device", ""), ("lambda", "")],
        ),
    ],
)
def test_what_runs_on_the_device(text: str, found: list[tuple[str, str]]) -> None:
    assert regions(text) == found


def test_what_the_cpu_cannot_take() -> None:
    with pytest.raises(UnsupportedOnCpu, match="unusual way") as refused:
        regions("__global__ void (*k(int x))(float) { }")
    assert refused.value.reason == "a kernel declared in an unusual way"
    with pytest.raises(UnsupportedOnCpu, match="more than 200 deep"):
        regions("{" * 201)
    regions("void f() " + "{" * 200 + "}" * 200)
    with pytest.raises(SplitRefused, match="do not match"):
        regions("__global__ void k() { ( }")
    with pytest.raises(SplitRefused, match="never closed"):
        regions("__global__ void k() {")
    regions("void f() {")


# ---- kernels


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ("int*, int", "int* dice_unnamed_0, int dice_unnamed_1"),
        ("int, int x, int", "int dice_unnamed_0, int x, int dice_unnamed_2"),
        ("float = 1, const int & /* unused */", "float dice_unnamed_0 = 1, const int & dice_unnamed_1 /* unused */"),
    ],
)
def test_parameters_without_a_name_get_one_each(parameters: str, named: str) -> None:
    text = rewrite_cuda(f"__global__ void __launch_bounds__(int(64)) k({parameters}) {{ }}").text
    assert text.startswith(f"__global__ void __launch_bounds__(int(64)) k({named}) {{")


def test_launch_bounds_without_a_value_are_refused_by_name() -> None:
    with pytest.raises(SplitRefused, match="launch bounds without a value"):
        rewrite_cuda("__global__ void __launch_bounds__() k() { }")


def test_assembly_without_parentheses_is_unsupported() -> None:
    with pytest.raises(UnsupportedOnCpu, match="inline PTX: asm"):
        rewrite_cuda("__global__ void k() { asm; }")


# ---- host code


@pytest.mark.parametrize(
    ("text", "rewritten"),
    [
        ("x.is_cuda();", "x.is_cpu();"),
        ("x->is_cuda() && x.is_cpu();", "x->is_cpu() && x.is_xla();"),
        ("x.get_device() + x.device().index();", "x.is_meta() + x.device().is_meta();"),
        ("is_cuda(x); x.is_cuda;", "is_cuda(x); x.is_cuda;"),
        ("x.type().is_cuda();", "x.device().is_cpu();"),
        ("x.cuda(); y.cuda(0);", "x.to(::at::kCPU); y.to(::at::kCPU, 0);"),
        ("#define MOVED x.cuda(\nint a;", "#define MOVED x.to(::at::kCPU, \nint a;"),
        ("x.pin_memory().is_pinned();", "x.contiguous().is_meta();"),
        ("x.to(torch::kCUDA);", "x.to(torch::kCPU);"),
        ("c10::DeviceType::CUDA == at::Backend::CUDA;", "c10::DeviceType::CPU == at::Backend::CPU;"),
        ("Other::CUDA;", "Other::CUDA;"),
        ('torch::Device d("cuda"), e("cuda:1"), f("cuda:x");', 'torch::Device d("cpu"), e("cpu"), f("cuda:x");'),
        ('m.def("cuda", &cuda); x.to("cuda");', 'm.def("cuda", &cuda); x.to("cpu");'),
        ('// x.is_cuda()\nauto s = "x.is_cuda()";', '// x.is_cuda()\nauto s = "x.is_cuda()";'),
        ("torch::cuda::synchronize();", "dice_cpu::torch_cuda::synchronize();"),
        ("#define CHECK(x) TORCH_CHECK(x.is_cuda())\nint a;", "#define CHECK(x) TORCH_CHECK(x.is_cpu())\nint a;"),
        ("TORCH_LIBRARY_IMPL(my, CUDA, m) { }", "TORCH_LIBRARY_IMPL(my, CPU, m) { }"),
        (
            "TORCH_LIBRARY_IMPL(my, CPU, m) { } TORCH_LIBRARY_IMPL(my, CUDA, n) { } TORCH_LIBRARY_IMPL(a, CUDA, o) { }",
            "TORCH_LIBRARY_IMPL(my, CPU, m) { } TORCH_LIBRARY_IMPL(my, CUDA, n) { } TORCH_LIBRARY_IMPL(a, CPU, o) { }",
        ),
    ],
)
def test_questions_for_the_device(text: str, rewritten: str) -> None:
    assert rewrite_host(text) == rewritten


def test_host_code_that_cannot_be_read() -> None:
    with pytest.raises(SplitRefused):
        rewrite_host('auto s = "abc')
