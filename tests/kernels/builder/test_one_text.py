"""PyTorch's headers as one text: the same tokens on long lines, and which files it stands for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dice.kernels.builder.builder import Builder
from dice.kernels.builder.cpu_toolchain import cpu_header
from dice.kernels.builder.final_refusal import STOP
from dice.kernels.builder.one_text import in_long_lines, included_files, neighbours, says_once

MANY = "\n".join(f"inline int long_name_{i}(int argument)\n{{ return argument + {i}; }}" for i in range(400))


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("int a;\n\n  int b;\n", "int a;   int b; \n"),
        ('# 1 "a.h" 1 3\nint a;\n  # 12 "/b c.h" 2\nint b;', "int a; int b; \n"),
        ("int a;\n#define M 1\n#undef M\nint b;", "int a; \n#define M 1\n#undef M\nint b; \n"),
        ("#pragma once\n  #pragma GCC poison a\nint b;", "#pragma once\n  #pragma GCC poison a\nint b; \n"),
        ('auto a = R"(x\n# y\n\n  z)";\nint b;\nint c;', 'auto a = R"(x\n# y\n\n  z)"; int b; int c; \n'),
        ('auto a = u8R"e(  \n)" )e", b = R"(\n)";\nint c;', 'auto a = u8R"e(  \n)" )e", b = R"(\n)"; int c; \n'),
        ('auto a = R"(x)";\nint b;', 'auto a = R"(x)"; int b; \n'),
        ('f("R",g("(\\"R"),\'"\');\nint b;', 'f("R",g("(\\"R"),\'"\'); int b; \n'),
        ('auto a = FOOR"b(";\nint c;', 'auto a = FOOR"b("; int c; \n'),
        ("", "\n"),
    ],
)  # fmt: skip
def test_what_stands_between_directives_is_one_line(text: str, joined: str) -> None:
    assert in_long_lines(text) == joined


def test_gpp_reads_the_same_tokens(tmp_path: Path) -> None:
    source = '#include <string>\n#include <variant>\n#define TWO 2\nauto raw = R"x(a\n#b  \n\n)x" "R\\"(";\n' + MANY
    command = ["c++", "-std=c++20", "-E", "-dD", "-x", "c++", "-"]
    text = subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout

    def again(text: str) -> str:
        command = ["c++", "-std=c++20", "-undef", "-nostdinc", "-w", "-E", "-P", "-x", "c++", "-"]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout

    joined = in_long_lines(text)
    assert again(joined).split() == again(text).split()
    assert "\n#b  \n\n)x" in joined
    assert joined.count("\n") < text.count("\n") / 3


@pytest.mark.parametrize("api_first", [True, False])
def test_headers_are_named_as_an_include_may_ask_for_them(api_first: bool) -> None:
    text = '# 1 "/t/include/api/a.h" 1\nx\n# 2 "/t/include/c10/b.h"\n# 1 "/usr/include/c.h"\n# 1 "<built-in>"\n'
    folders = [Path("/t/include/api"), Path("/t/include")]
    found = included_files(text, folders if api_first else folders[::-1])
    a, b = Path("/t/include/api/a.h"), Path("/t/include/c10/b.h")
    assert found == {"a.h": a, "api/a.h": a, "c10/b.h": b}


@pytest.mark.parametrize(
    ("text", "once"),
    [
        ("// why\n#pragma once\n", True),
        ("  #  pragma   once", True),
        ("#ifndef A_H\n#define A_H\n#endif\n", False),
        ("// says #pragma once\nX(a)\n", False),
        ("#pragma once_more\n", False),
    ],
)
def test_a_header_that_may_be_read_again_is_told_apart(text: str, once: bool) -> None:
    assert says_once(text) == once


def test_a_header_that_reads_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "detail").mkdir()
    (tmp_path / "detail" / "a.h").touch()
    texts = {
        "b.h": '#include "detail/a.h"\n',
        "c.h": '#include <b.h>\n  #  include "b.h"\n',
        "detail/d.h": '#include "../b.h"\n',
        "e.h": '#include <b.h>\n#include "torch/types.h"\n// #include "b.h"\n',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    found = {name: [str(path.relative_to(tmp_path)) for path in neighbours(tmp_path / name)] for name in texts}
    assert found == {"b.h": ["detail/a.h"], "c.h": ["b.h"], "detail/d.h": ["b.h"], "e.h": []}


@pytest.mark.parametrize("name", ["slim_cpu", "full_cpu"])
def test_pytorch_is_one_text_and_what_may_be_read_again_is_not_in_the_way(cpu_builder: Builder, name: str) -> None:
    precompiled = cpu_builder.precompiled
    folder = precompiled.torch_folder(cpu_header(precompiled, name))
    text = (folder / "torch" / "types.h").read_text()
    long = sum(len(line) for line in text.split("\n") if len(line) > 4095)
    assert long > 0.8 * len(text)
    installed = precompiled.toolchain.torch_root / "include"
    roots = (installed / "torch/csrc/api/include", installed)
    files = [path for path in folder.rglob("*.h") if path.read_text() == "#pragma once\n#include <torch/types.h>\n"]
    assert len(files) > 1000
    for path in files:
        file = path.relative_to(folder)
        assert says_once(next(root / file for root in roots if (root / file).is_file()).read_text())


INCLUDED = """
torch/all.h torch/enum.h torch/nn.h torch/nn/functional/conv.h torch/nn/modules/linear.h torch/optim/schedulers/step_lr.h
torch/csrc/api/include/torch/enum.h torch/csrc/jit/python/python_ivalue.h torch/csrc/autograd/functions/utils.h
pybind11/native_enum.h pybind11/numpy.h pybind11/chrono.h pybind11/embed.h pybind11/stl_bind.h ATen/Parallel.h
ATen/core/aten_interned_strings.h ATen/native/Resize.h ATen/ops/add.h ATen/ops/add_native.h c10/util/Half.h fmt/format.h
"""


def test_a_header_finds_what_stands_beside_it(cpu_builder: Builder) -> None:
    """`pybind11/eigen/matrix.h` needs a library that is not installed, and before it `common.h` of its own folder."""
    precompiled = cpu_builder.precompiled
    folder = precompiled.torch_folder(cpu_header(precompiled, "full_cpu"))
    installed = precompiled.toolchain.torch_root / "include"
    for path in (installed / "pybind11").rglob("*.h"):
        for other in neighbours(path):
            assert (folder / path.relative_to(installed)).is_file()
            assert (folder / other.relative_to(installed)).is_file()


@pytest.mark.parametrize("name", INCLUDED.split())
def test_a_header_of_pytorchs_can_be_included_as_ever(cpu_builder: Builder, tmp_path: Path, name: str) -> None:
    """Behind all of PyTorch, up to a declaration that stops g++ before the templates that are left to the end."""
    precompiled = cpu_builder.precompiled
    header = precompiled.header(cpu_header(precompiled, "full_cpu"))
    source = tmp_path / "a.cpp"
    source.write_text(f"#include <{name}>\n{STOP}")
    command = ["c++", *header, "-fno-diagnostics-show-caret", "-Wfatal-errors", "-fsyntax-only", source]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    assert [line for line in said.splitlines() if "error:" in line] == [
        line for line in said.splitlines() if "instantiation depth exceeds" in line
    ]
    assert "instantiation depth exceeds" in said
