"""The device side of a .cu: all that the GPU runs, nothing of the host, and quick to compile."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from cuda_text import split_source

from dice.kernels.builder.compiler import Workbench
from dice.kernels.builder.device_image import image_symbols
from dice.kernels.builder.device_unit import explicit_instantiation, render_device
from dice.kernels.builder.toolchain import Toolchain
from dice.kernels.source.lexer import SplitRefused


def device(source: str, *instantiations: str, first_line: int = 1) -> str:
    return render_device(split_source(source), "cuda.cu", first_line, instantiations)


def defined(unit: str, tools: Toolchain, bench: Workbench) -> set[str]:
    """Names of kernels and variables that nvcc makes of a device unit under PyTorch's flags."""
    folder = bench.folder
    (folder / "device.cu").write_text(unit)
    command = [tools.nvcc, *tools.nvcc_flags, tools.standard, "-arch=sm_90", "-cubin", "device.cu"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return image_symbols(bench, folder / "device.cubin")


SOURCE = """
#include <torch/extension.h>
#include <vector>
#define N 4
__constant__ float weights[N];
namespace { __device__ float op(float x) { return x * weights[0]; } }
struct Pair { float a, b; };
constexpr int twice(int n) { return 2 * n; }
static __global__ void k(const float* x, Pair* y, int n) { y[twice(n)].a = op(x[n]); }
template <typename T, int K> __global__ void t(T* x) { x[K] = T(0); }
std::vector<torch::Tensor> run(torch::Tensor x) {
    k<<<1, 1>>>(x.data_ptr<float>(), nullptr, 3);
    t<float, 4><<<1, 1>>>(x.data_ptr<float>());
    return {x};
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""


def test_host_code_is_left_out() -> None:
    unit = device(SOURCE)
    for word in ("torch/", "std::vector", "run(", "<<<", "PYBIND11_MODULE"):
        assert word not in unit
    for text in ("#define N 4", "weights[N]", "float op(", "struct Pair", "twice(int n)", "void k(", "void t("):
        assert text in unit


def test_nvcc_compiles_it_without_pytorchs_headers(cuda_toolchain: Toolchain, bench: Workbench, tmp_path: Path) -> None:
    unit = device(SOURCE, explicit_instantiation("void t<float, 4>(float*)"))
    names = defined(unit, cuda_toolchain, bench)
    assert {"_Z1kPKfP4Pairi", "_Z1tIfLi4EEvPT_", "weights"} <= names


def test_a_static_kernel_can_be_registered_by_its_name(
    cuda_toolchain: Toolchain, bench: Workbench, tmp_path: Path
) -> None:
    defined(device("static __global__ void k(int n) { }"), cuda_toolchain, bench)
    exported = subprocess.run(
        ["nm", "-g", "device.cubin"], cwd=bench.folder, capture_output=True, text=True, check=True
    )
    assert " T _Z1ki\n" in exported.stdout


def test_names_in_anonymous_namespaces_are_those_of_the_host(
    cuda_toolchain: Toolchain, bench: Workbench, tmp_path: Path
) -> None:
    names = defined(device("namespace { __global__ void k(int n) { } }"), cuda_toolchain, bench)
    assert "_ZN12dice_unnamed1kEi" in names


@pytest.mark.parametrize(
    "body",
    [
        "x[0] = FLT_MAX;",
        "x[0] = INT_MAX;",
        "x[0] = std::numeric_limits<float>::infinity();",
        "x[0] = std::is_same<int, int>::value;",
        "uint64_t n = 1; x[0] = n;",
        "x[0] = std::max(x[1], x[2]);",
        "x[0] = std::abs(x[1]);",
        'printf("%g", x[0]); assert(x[0] > 0);',
    ],
)
def test_what_pytorchs_headers_bring_along_is_there(cuda_toolchain: Toolchain, bench: Workbench, body: str) -> None:
    source = f"#include <torch/extension.h>\n__global__ void k(float* x) {{ {body} }}"
    assert "_Z1kPf" in defined(device(source), cuda_toolchain, bench)


def test_errors_are_reported_where_the_candidate_wrote_them(
    cuda_toolchain: Toolchain, bench: Workbench, tmp_path: Path
) -> None:
    unit = device("#include <torch/extension.h>\n\nint host;\n__global__ void k() { wrong(); }\n", first_line=4)
    (tmp_path / "device.cu").write_text(unit)
    command = [cuda_toolchain.nvcc, "-arch=sm_90", "-cubin", "device.cu"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert re.match(r"cuda\.cu\(7\): error", done.stderr)


@pytest.mark.parametrize(
    ("demangled", "expected"),
    [
        ("void k<float>(float*, int)", "template __global__ void k<float>(float*, int);"),
        ("void a::k<4, true>(int)", "template __global__ void a::k<4, true>(int);"),
        ("void k<&(op(float))>(int)", "template __global__ void k<&op>(int);"),
        ("void k<&(a::op(float (*)(int), int))>(int)", "template __global__ void k<&a::op>(int);"),
    ],
)
def test_instances_are_named_as_the_language_wants_them(demangled: str, expected: str) -> None:
    assert explicit_instantiation(demangled) == expected


@pytest.mark.parametrize(
    "demangled",
    [
        "void k<run()::{lambda(float)#1}>(int)",
        "void k<(anonymous namespace)::Op>(int)",
        "void k<run()::'lambda'(float)>(int)",
    ],
)
def test_an_argument_without_a_name_cannot_be_instantiated(demangled: str) -> None:
    with pytest.raises(SplitRefused, match="no name"):
        explicit_instantiation(demangled)


def test_functions_as_template_arguments_are_instantiated_for_real(
    cuda_toolchain: Toolchain, bench: Workbench, tmp_path: Path
) -> None:
    """By the name that c++filt gives the host's stub."""
    source = """
    __device__ float op(float x) { return x + 1; }
    template <float (*F)(float)> __global__ void k(float* x) { x[0] = F(x[0]); }
    """
    unit = device(source, explicit_instantiation("void k<&(op(float))>(float*)"))
    assert "_Z1kIXadL_Z2opfEEEvPf" in defined(unit, cuda_toolchain, bench)


@pytest.mark.parametrize(
    ("source", "kept", "dropped"),
    [
        ("#include <cub/cub.cuh>\n__global__ void k() { }", "cub/cub.cuh", "torch"),
        ("#include <vector>\n__global__ void k() { }\nstd::vector<int> v;", "void k", "vector"),
        ("#include <cublas_v2.h>\n__global__ void k() { }", "void k", "cublas"),
        ("const int kHost = 3;\nconst int kDevice = 4;\n__global__ void k(int* x) { *x = kDevice; }", "kDevice", "kHost"),
        ("struct H { int a; };\nstruct D { int a; };\n__global__ void k(D d) { }", "struct D", "struct H"),
        ("using namespace torch;\nusing F = float;\n__global__ void k(F x) { }", "using F", "torch"),
    ],
    ids=["device library", "standard header", "host library", "constant", "type", "using"],
)  # fmt: skip
def test_only_what_device_code_names_is_there(source: str, kept: str, dropped: str) -> None:
    unit = device(source)
    assert kept in unit
    assert dropped not in unit
