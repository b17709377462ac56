"""main.cpp: stock's text to the letter, and the same with a binding table."""

from __future__ import annotations

from pathlib import Path

import pytest
from cuda_text import split_source
from torch.utils import cpp_extension

from dice.kernels.builder.binding import BindingRefused, table_from_functions, table_from_module
from dice.kernels.builder.main_unit import MainUnit
from dice.kernels.source.lexer import SplitRefused

FUNCTIONS = (("run", "sums rows"), ("ns::other", "other"))
MODULE = 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n  m.def("run", &run);\n}'


def unit(text: str, functions: tuple[tuple[str, str], ...] | None = FUNCTIONS, **options: object) -> MainUnit:
    return MainUnit(text, functions, **{"torch_errors": True, "source": "main.cpp"} | options)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("torch_errors", [True, False])
@pytest.mark.parametrize("implicit_header", [True, False])
@pytest.mark.parametrize("functions", [dict(FUNCTIONS), None])
def test_the_text_is_what_load_inline_writes(
    torch_errors: bool,
    implicit_header: bool,
    functions: dict[str, str] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cpp_extension, "_jit_compile", lambda *_, **__: None)
    cpp_extension.load_inline(
        "m",
        ["int run();", "int x;"],
        functions=functions,
        build_directory=str(tmp_path),
        with_pytorch_error_handling=torch_errors,
        no_implicit_headers=not implicit_header,
    )
    pairs = None if functions is None else tuple(functions.items())
    made = unit("int run();\nint x;", pairs, torch_errors=torch_errors, implicit_header=implicit_header)
    assert made.stock_text() == (tmp_path / "main.cpp").read_text()


def test_the_same_as_a_unit_of_a_module() -> None:
    made = unit("int run();")
    assert made.exact("m_v1") == f'#define TORCH_EXTENSION_NAME m_v1\n#line 1 "main.cpp"\n{made.stock_text()}\n'


def test_functions_become_a_table_behind_the_text() -> None:
    text = "int run();"
    assert unit(text).with_table("m") == f'#line 2 "main.cpp"\n{text}\n' + table_from_functions(FUNCTIONS, True, "m")
    assert unit(text, implicit_header=False).with_table("m").startswith('#line 1 "main.cpp"\n')
    assert unit(text, None).with_table("m") == f'#line 2 "main.cpp"\n{text}\n'
    with pytest.raises(BindingRefused, match="not a plain name"):
        unit(text, (("run<int>", ""),)).with_table("m")


def test_a_module_becomes_a_table_in_its_place() -> None:
    text = f"namespace py = pybind11;\nint run();\n{MODULE}\nint after();"
    table = table_from_module(MODULE, "m")
    made = unit(text, None).with_table("m")
    assert made == f'#line 2 "main.cpp"\n\nint run();\n{table}#line 5 "main.cpp"\n\nint after();\n'


@pytest.mark.parametrize(
    ("text", "functions", "reason"),
    [
        (f"{MODULE}\n{MODULE}", None, "two modules"),
        (MODULE, FUNCTIONS, "two modules"),
        ("const char* name = TORCH_EXTENSION_NAME;", None, "unusual place"),
        ("TORCH_LIBRARY(my, m) { m.def(1); }", None, "unusual place"),
    ],
)
def test_bindings_that_no_table_expresses(
    text: str, functions: tuple[tuple[str, str], ...] | None, reason: str
) -> None:
    with pytest.raises(BindingRefused, match=reason):
        unit(text, functions).with_table("m")


@pytest.mark.parametrize("text", ["__global__ void k();", "void f() { k<<<1, 2>>>(); }"])
def test_cuda_in_a_cpp_source_is_not_split(text: str) -> None:
    with pytest.raises(SplitRefused, match="CUDA code in a C"):
        _ = unit(text).split


CUDA = "#include <torch/extension.h>\nint helper() { return 1; }\nat::Tensor run(at::Tensor x) { return x; }"


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("at::Tensor run(at::Tensor x);", True),
        (
            "#include <vector>\n#include <torch/extension.h>\nstd::vector<at::Tensor> run(const at::Tensor& x, int64_t n);",
            True,
        ),
        (f"int run();\nnamespace py = pybind11;\n{MODULE}", True),
        ("#include <own.h>\nint run();", False),
        ("#define A 1\nint run();", False),
        ("int run() { return 1; }", False),
        ("int x;", False),
        ("using T = at::Tensor;", False),
        ("static int run();", False),
        ('extern "C" int run();', False),
        ("namespace a { int run(); }", False),
        ("template <class T> int run();", False),
        ("int run() noexcept;", False),
        ("__attribute__((noinline)) int run();", False),
        ("int run(int n = 3);", False),
        ("Own run();", False),
        ("int run(Own x);", False),
        ("int run(const Own& x);", False),
    ],
)
def test_what_may_stand_before_the_cuda_source(text: str, fits: bool) -> None:
    functions = None if "PYBIND11" in text else FUNCTIONS
    assert unit(text, functions).fits_before(split_source(CUDA)) == fits


@pytest.mark.parametrize(
    ("cuda", "fits"),
    [
        ("int run() { return 1; }", True),
        ("int run();\nint f() { return run(); }", True),
        ("int f() { return run(); }\nint run() { return 1; }", False),
        ("#define A run\nint run() { return 1; }", False),
        ("struct run { };", False),
        ("int other() { return 1; }", True),
    ],
)
def test_a_name_that_the_cuda_source_uses_before_it_declares_it(cuda: str, fits: bool) -> None:
    assert unit("int run();").fits_before(split_source(cuda)) == fits


def test_without_bindings_nothing_stands_before() -> None:
    assert not unit("int run();", None).fits_before(split_source(CUDA))
