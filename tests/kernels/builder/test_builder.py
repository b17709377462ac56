"""The builder: PyTorch's verdict and PyTorch's machine code, at less cost; what may be built at all; the cache.

The CUDA tests need nvcc but no GPU: nothing is launched.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from extension_samples import BUILT, REFUSED
from nvcc import needs_nvcc

from dice.errors import HarnessError
from dice.kernels.builder.artefacts import NotPrepared
from dice.kernels.builder.builder import Builder
from dice.kernels.builder.cache import BuildCache
from dice.kernels.builder.compiler import Meter, ToolLimits, Workbench
from dice.kernels.builder.outcome import Declined, FinalRefusal, OutOfLimits
from dice.kernels.builder.precompiled import HIDE_ARCHIVES
from dice.kernels.builder.stock import build_stock
from dice.kernels.candidate.extension_call import load_inline
from dice.kernels.candidate.extension_loader import build_exception, load_extension
from dice.kernels.records.extension import BuildResult

CPP: dict[str, Any] = {
    "cpp_sources": """
#include <stdexcept>
torch::Tensor scaled(torch::Tensor x, double a, int64_t b) { return x * a + b; }
std::vector<torch::Tensor> parts(const torch::Tensor& x, std::vector<int64_t> sizes) { return x.split_with_sizes(sizes); }
std::tuple<torch::Tensor, int64_t, bool> facts(torch::Tensor x) { return {x.sum(), x.numel(), x.is_contiguous()}; }
torch::Tensor either(torch::Tensor x, c10::optional<torch::Tensor> y, std::string how) {
    return y.has_value() && how == "add" ? x + *y : x;
}
std::vector<int> flags(std::vector<int> values, bool negate) {
    for (auto& v : values) v = negate ? -v : v;
    return values;
}
torch::Tensor checked(torch::Tensor x) {
    TORCH_CHECK(x.dim() == 2, "expected a matrix, got ", x.dim(), " dimensions");
    return x;
}
void raises(int64_t kind) {
    if (kind == 0) throw std::invalid_argument("zero");
    if (kind == 1) throw std::out_of_range("one");
    throw std::runtime_error("more");
}
""",
    "functions": ["scaled", "parts", "facts", "either", "flags", "checked", "raises"],
}


def build(builder: Builder, arguments: dict[str, Any]) -> BuildResult:
    return builder.build(load_inline(name="sample", **arguments))


@pytest.fixture(scope="module")
def cuda(build_folder: Path) -> Builder:
    """Fast routes only: what they leave to stock is a compile error that repeats the reason."""
    return Builder(build_folder, "cuda", arch="9.0", stock_fallback=False)


def left_to_stock(result: BuildResult) -> bool:
    return bool(result.fallbacks) and result.fallbacks[-1] == result.message


CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("scaled", (torch.arange(6.0), 2.5, 3)),
    ("scaled", (torch.arange(6), 2, 3)),
    ("scaled", (torch.arange(6.0), "2", 3)),
    ("scaled", (torch.arange(6.0),)),
    ("scaled", (torch.arange(6.0), 2.5, 3.5)),
    ("parts", (torch.arange(6.0), [1, 2, 3])),
    ("parts", (torch.arange(6.0), (1, 5))),
    ("parts", (torch.arange(6.0), [1, 2])),
    ("facts", (torch.ones(2, 3).t(),)),
    ("either", (torch.ones(2), None, "add")),
    ("either", (torch.ones(2), torch.ones(2), "add")),
    ("either", (torch.ones(2), 3, "add")),
    ("flags", ([1, -2], True)),
    ("flags", ([2**40], True)),
    ("checked", (torch.ones(2, 2),)),
    ("checked", (torch.ones(2),)),
    ("raises", (0,)),
    ("raises", (1,)),
    ("raises", (2,)),
]


def outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[str, str]:
    """What a call did, in words that two builds must share."""
    try:
        return "returned", repr(function(*arguments))
    except Exception as error:  # noqa: BLE001  whatever it raises is compared
        return type(error).__name__, str(error).split("\n")[0]


@pytest.fixture(scope="module")
def stock_module(cpu_builder: Builder, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """CPP as PyTorch builds it."""
    work = tmp_path_factory.mktemp("stock")
    request = load_inline(name="sample", **CPP)
    bench = Workbench(work, Meter(cpu_builder.jail), ToolLimits(600.0), math.inf)
    built = build_stock(request, "sample_stock", cpu_builder.toolchain, bench, None)
    path = cpu_builder.cache.put(
        "stock", BuildResult(status="built", key="stock", route="stock"), built.path, _facts("sample_stock")
    )
    module = load_extension(path.path or "", "sample_stock")
    assert isinstance(module, ModuleType)
    return module


def _facts(module: str) -> dict[str, Any]:
    return {"module": module, "table": False, "libraries": []}


def recorded_outcomes() -> list[tuple[str, str]]:
    """What the calls did in a module that PyTorch itself had built, in the order of CALLS; a slow test compares them."""
    return [tuple(pair) for pair in json.loads(Path(__file__).with_name("binding_outcomes.json").read_text())]


def outcomes(module: ModuleType) -> list[tuple[str, str]]:
    return [outcome(getattr(module, name), arguments) for name, arguments in CALLS]


@pytest.mark.slow  # a minute of pybind11's templates; every build of the other tests uses our bindings
def test_bindings_behave_as_pybind11s(cpu_builder: Builder) -> None:
    result = build(cpu_builder, CPP)
    assert result.status == "built", result.message
    ours = load_extension(result.path or "", "sample")
    assert isinstance(ours, ModuleType)
    assert outcomes(ours) == recorded_outcomes()
    assert {name for name in dir(ours) if not name.startswith("_")} == set(CPP["functions"])


@pytest.mark.slow
def test_the_recorded_outcomes_are_pybind11s(stock_module: ModuleType) -> None:
    assert outcomes(stock_module) == recorded_outcomes()


def test_a_failed_build_raises_what_pytorch_raises(cpu_builder: Builder) -> None:
    result = build(cpu_builder, {"cpp_sources": "int f( {", "functions": ["f"]})
    assert result.status == "compile_error"
    error = build_exception(result, "mine")
    assert isinstance(error, RuntimeError)
    assert str(error).startswith("Error building extension 'mine': ")


@pytest.mark.parametrize(
    "more",
    [
        {"extra_cflags": ["-O2; touch /tmp/x"]},
        {"extra_cflags": ["-fplugin=/tmp/evil.so"]},
        {"extra_cflags": ["-wrapper", "/tmp/evil"]},
        {"extra_ldflags": ["-Wl,-rpath,$(id)"]},
    ],
)
def test_what_would_act_on_the_machine_is_refused_unbuilt(cpu_builder: Builder, more: dict[str, Any]) -> None:
    result = build(cpu_builder, {"cpp_sources": "int f() { return 0; }", "functions": ["f"]} | more)
    assert (result.status, result.route, result.cpu_seconds) == ("refused_flag", "refused", 0.0)


def test_the_key_follows_the_sources_and_not_the_name(cpu_builder: Builder) -> None:
    def key(name: str, **arguments: Any) -> str:
        return cpu_builder.key(load_inline(name=name, **({"cpp_sources": "int f();", "functions": ["f"]} | arguments)))

    assert key("a") == key("b")
    assert key("a") != key("a", cpp_sources="int f(); ")
    assert key("a") != key("a", extra_cflags=["-O3"])
    library = {"cpp_sources": "TORCH_LIBRARY(TORCH_EXTENSION_NAME, m) {}"}
    assert key("a", **library) != key("b", **library)


def exported(path: Path) -> set[str]:
    text = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in text.splitlines()}


def test_a_library_taken_from_an_archive_serves_nobody_else(cpu_builder: Builder, tmp_path: Path) -> None:
    """Where g++ has libstdc++ only as an archive, cuDNN's calls must not end in our copy of it."""
    (tmp_path / "a.cpp").write_text('#include <iostream>\nvoid hello(long v) { std::cout << v << "x"; }\n')
    subprocess.run([cpu_builder.toolchain.cxx, "-fPIC", "-c", "a.cpp"], cwd=tmp_path, check=True)
    stream_insertion = "_ZNSo9_M_insertIlEERSoT_"
    for flags, visible in (((), True), ((HIDE_ARCHIVES,), False)):
        command = [cpu_builder.toolchain.cxx, "-shared", "-static-libstdc++", *flags, "a.o", "-o", "a.so"]
        subprocess.run(command, cwd=tmp_path, check=True)
        assert (stream_insertion in exported(tmp_path / "a.so")) == visible
        assert "_Z5hellol" in exported(tmp_path / "a.so")
    bench = Workbench(tmp_path, Meter(cpu_builder.jail), ToolLimits(60.0), math.inf)
    linked = cpu_builder.precompiled.link(bench, ["a.o"], "b.so", flags=["-static-libstdc++"])
    assert linked.ok, linked.output
    assert stream_insertion not in exported(tmp_path / "b.so")
    assert stream_insertion not in exported(cpu_builder.precompiled.support_library())


def test_the_linker_reads_no_large_library(cpu_builder: Builder, tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text('#include <iostream>\nvoid hello(long v) { std::cout << v << "x"; }\n')
    subprocess.run([cpu_builder.toolchain.cxx, "-fPIC", "-c", "a.cpp"], cwd=tmp_path, check=True)
    bench = Workbench(tmp_path, Meter(cpu_builder.jail), ToolLimits(60.0), math.inf)
    linked = cpu_builder.precompiled.link(bench, ["a.o"], "b.so", flags=["-Wl,--trace"])
    read = [Path(line) for line in linked.output.splitlines() if ".so" in line]
    stand_ins = [path.name for path in read if path.parent.name == "link"]
    assert "libdice_support.so" in stand_ins
    found = subprocess.run(
        [cpu_builder.toolchain.cxx, "-print-file-name=libstdc++.so"], capture_output=True, text=True, check=True
    )
    assert ("libstdc++.so" in stand_ins) == ("/" in found.stdout)  # an archive has what the process may not have
    assert not [path for path in read if "torch" in path.name]


# A selection: benchmarks/build_cost.py builds hundreds.
FAST = (
    "plain",
    "AT_DISPATCH with Half",
    "dynamic shared memory",
    "kernel in a namespace",
    "overloaded kernels",
    "launch inside a macro",
    "one configuration value",
    "wrapper in C++",
    "PYBIND11_MODULE by hand",
    "several sources",
    "half without its header",
    "fp8 without its header",
    "launch bounds by PyTorch's macro",
    "standard header that PyTorch brings along",
    "operator for host and device",
)
LEFT = {
    "thrust on the host side": "thrust",
    "managed variable": "managed",
    "narrowing of a declared scalar": "narrowing",
    "narrowing of a constant": "narrowing",
    "launch bounds by an own macro": "macro",
    "name from a using-directive": "ceil_div",
    "host function behind one for both sides": '"h"',
}
REFUSED_SLOW = ("undeclared name in device code", "missing semicolon")
REFUSED_FAST = (
    "kernel called like a function",
    "no configuration value",
    "shared variable on the host",
    "device function called on the host",
    "too much shared memory",
    "unknown library",
)


LEFT_SLOW = ("narrowing of a constant", "launch bounds by an own macro")
"""Each needs a minute, for headers that no other test needs."""


@needs_nvcc
@pytest.mark.parametrize("name", FAST)
def test_cuda_sources_build_without_stock(cuda: Builder, name: str) -> None:
    result = build(cuda, BUILT[name])
    assert (result.status, result.route) == ("built", "split"), (result.message, result.fallbacks)
    assert result.launches == "counted"
    assert "dice_launch_open" in exported(Path(result.path or ""))


@needs_nvcc
@pytest.mark.parametrize(
    ("name", "word"),
    [pytest.param(*item, marks=[pytest.mark.slow] if item[0] in LEFT_SLOW else []) for item in LEFT.items()],
)
def test_what_only_stock_can_judge_is_left_to_it_by_name(cuda: Builder, name: str, word: str) -> None:
    result = build(cuda, (BUILT | REFUSED)[name])
    assert left_to_stock(result)
    assert word in result.message


# Slow are those whose certainty rests on PyTorch's untouched headers, precompiled for it.
@needs_nvcc
@pytest.mark.parametrize(
    "name", [*REFUSED_FAST, *(pytest.param(name, marks=pytest.mark.slow) for name in REFUSED_SLOW)]
)
def test_errors_that_stock_would_find_too_are_found_without_it(cuda: Builder, name: str) -> None:
    result = build(cuda, REFUSED[name])
    assert result.status == "compile_error"
    assert not left_to_stock(result)
    assert "error" in result.message or "cannot find" in result.message


@needs_nvcc
@pytest.mark.parametrize(
    ("flags", "refused"),
    [
        ({"extra_cflags": ["--use_fast_math"]}, True),
        ({"extra_cflags": ["-use_fast_math"]}, False),  # for g++ an option of the linker's, `-u se_fast_math`
        ({"extra_cuda_cflags": ["--use_fast_math"]}, False),
        ({"extra_cflags": ["-DNDEBUG"], "extra_cuda_cflags": ["-DNDEBUG"]}, False),
        ({"extra_cuda_cflags": ["--no-such-flag"]}, True),
    ],
)
def test_flags_that_a_compiler_refuses_are_errors(cuda: Builder, flags: dict[str, Any], refused: bool) -> None:
    result = build(cuda, BUILT["plain"] | flags)
    assert (result.status, result.route) == ("compile_error" if refused else "built", "split"), result.message
    assert not left_to_stock(result)


@needs_nvcc
def test_what_only_the_reading_for_the_host_refuses_is_left_to_stock(cuda: Builder) -> None:
    assert left_to_stock(build(cuda, REFUSED["cached load of PyTorch's half"]))


def audited(build_folder: Path) -> Builder:
    """A builder that compares every result with stock's."""
    builder = Builder(build_folder / "audited", "cuda", arch="9.0", audit_share=1.0)
    if builder.toolchain.facts["torch_cuda"] is None:
        pytest.skip("stock needs a PyTorch with CUDA")
    return builder


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize("name", ["template kernel, explicit type and value", "constant memory"])
def test_the_machine_code_is_stocks(build_folder: Path, name: str) -> None:
    builder = audited(build_folder)
    result = build(builder, BUILT[name])
    assert (result.status, result.route) == ("built", "split")
    (finding,) = builder.audit.findings
    assert not finding.differences
    assert finding.kernels == finding.identical_kernels > 0


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize("name", ["function that names a kernel", "undeclared name in device code"])
def test_stock_refuses_what_we_refuse(build_folder: Path, name: str) -> None:
    builder = audited(build_folder)
    assert build(builder, REFUSED[name]).status == "compile_error"
    assert [finding.differences for finding in builder.audit.findings] == [()]


@pytest.mark.parametrize("cpp", ['auto s = "abc', "int f();"])
def test_a_header_that_this_machine_cannot_make_is_no_fault_of_the_harness(
    cpu_builder: Builder, monkeypatch: pytest.MonkeyPatch, cpp: str
) -> None:
    """Also where it was wanted only to say why a source cannot be read."""

    def refuse(*_: object) -> None:
        raise NotPrepared("no header")

    monkeypatch.setattr(cpu_builder.precompiled, "header", refuse)
    result = build(cpu_builder, {"cpp_sources": cpp, "cuda_sources": "__global__ void k() {}", "functions": ["f"]})
    assert result.status == "unsupported_on_cpu"
    assert "no header" in result.message


def test_a_machine_on_which_not_even_stock_can_work_is_no_fault_of_the_candidate(
    cpu_builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decline(*_: object) -> None:
        raise Declined("too hard")

    def refuse(*_: object) -> None:
        raise NotPrepared("no header")

    monkeypatch.setattr(cpu_builder, "backend", "cuda")
    monkeypatch.setattr(cpu_builder, "_read_and_build", decline)
    monkeypatch.setattr(cpu_builder, "_stock", refuse)
    with pytest.raises(HarnessError, match=r"cannot compile what every build needs \(no header\)"):
        build(cpu_builder, {"cpp_sources": "int g() { return 8642; }", "functions": ["g"]})


@pytest.mark.parametrize(
    ("failure", "status"),
    [(OutOfLimits("timeout", "too slow"), "timeout"), (FinalRefusal("error: wrong", "stock"), "compile_error")],
)
def test_a_failure_names_the_route_that_it_befell(
    cpu_builder: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception, status: str
) -> None:
    def fail(*_: object) -> None:
        raise failure

    def decline(*_: object) -> None:
        raise Declined("too hard")

    monkeypatch.setattr(cpu_builder, "cache", BuildCache(tmp_path, 1.0))
    monkeypatch.setattr(cpu_builder, "_read_and_build", fail)
    monkeypatch.setattr(cpu_builder, "_stock", fail)
    found = []
    for backend, number in (("cpu", 1), ("cuda", 2)):
        monkeypatch.setattr(cpu_builder, "backend", backend)
        found.append(build(cpu_builder, {"cpp_sources": f"int f() {{ return {number}; }}", "functions": ["f"]}))
    monkeypatch.setattr(cpu_builder, "_read_and_build", decline)
    found.append(build(cpu_builder, {"cpp_sources": "int f() { return 3; }", "functions": ["f"]}))
    assert [(result.status, result.route) for result in found] == [
        (status, "cpu"),
        (status, "split"),
        (status, "stock"),
    ]
