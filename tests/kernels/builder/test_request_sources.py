"""The sources of a request as units: the same text as PyTorch would compile."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch.utils.cpp_extension
from extension_requests import files, inline

from dice.kernels.builder.request_sources import paste_headers, sources_of
from dice.kernels.records.extension import SourceFile
from dice.kernels.source.lexer import SplitRefused

CPP = "torch::Tensor f(torch::Tensor x);\n// two sources\n"
CUDA = "__global__ void k() {}\ntorch::Tensor f(torch::Tensor x) { return x; }\n"


@pytest.fixture
def torch_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """main.cpp and cuda.cu as this PyTorch's own load_inline writes them."""
    monkeypatch.setattr(torch.utils.cpp_extension, "_jit_compile", lambda *args, **kwargs: None)

    def write(**arguments: Any) -> dict[str, str]:
        torch.utils.cpp_extension.load_inline(name="e", build_directory=str(tmp_path), with_cuda=False, **arguments)
        return {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()}

    return write


@pytest.mark.parametrize(
    "arguments",
    [
        {"cpp_sources": CPP, "functions": ["f"]},
        {"cpp_sources": [CPP, "int g();\n"], "functions": {"f": "does f", "g": "does g"}},
        {"cpp_sources": CPP, "functions": "f", "with_pytorch_error_handling": False},
        {"cpp_sources": CPP + 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }'},
    ],
    ids=["list", "two sources", "without PyTorch's errors", "hand-written module"],
)
def test_main_cpp_is_pytorchs_byte_for_byte(torch_writes: Any, arguments: dict[str, Any]) -> None:
    (main,) = sources_of(inline(cuda=None, **{"cpp": arguments["cpp_sources"]} | _without(arguments))).mains
    assert main.stock_text() == torch_writes(**arguments)["main.cpp"].rstrip("\n")


def _without(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name != "cpp_sources"}


def test_the_cuda_source_begins_on_the_line_that_pytorch_gives_it(torch_writes: Any) -> None:
    sources = sources_of(inline(CPP, CUDA, functions=["f"]))
    written = torch_writes(cpp_sources=CPP, cuda_sources=CUDA, functions=["f"])["cuda.cu"]
    assert sources.cuda == CUDA
    assert "\n".join(written.split("\n")[sources.cuda_first_line - 1 :]).rstrip("\n") == CUDA.rstrip("\n")


def test_an_extension_without_cuda_has_one_unit() -> None:
    sources = sources_of(inline(CPP, None, functions=["f"]))
    assert sources.cuda is None
    assert len(sources.mains) == 1


TORCH = "#include <torch/extension.h>\n"


def test_files_are_units_by_their_suffix() -> None:
    request = files({"a.cpp": TORCH + "int a;", "b.cc": TORCH, "k.cu": TORCH + CUDA}, headers={"h.h": "int h;"})
    sources = sources_of(request)
    assert [main.source for main in sources.mains] == ["a.cpp", "b.cc"]
    assert (sources.cuda_name, sources.cuda_first_line, sources.cuda) == ("k.cu", 1, TORCH + CUDA)
    assert [header.name for header in sources.headers] == ["h.h"]
    assert not sources.inline


def test_a_file_that_has_pytorchs_header_by_its_own() -> None:
    request = files({"bind.cpp": '#include "in/own.h"\n', "k.cu": TORCH + CUDA}, {"in/own.h": TORCH})
    assert [main.source for main in sources_of(request).mains] == ["bind.cpp"]


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (inline(CPP, no_implicit_headers=True), "no_implicit_headers"),
        (files({"a.cpp": TORCH}, is_standalone=True, is_python_module=False), "standalone"),
        (files({"a.cu": TORCH, "b.cu": TORCH}), "several .cu"),
        (files({"a.cpp": "int main() {}"}), "without PyTorch's header"),
        (files({"a.cu": "__global__ void k() {}"}), "without PyTorch's header"),
    ],
    ids=["bare", "program", "two .cu", "plain C++", "plain CUDA"],
)
def test_what_only_stock_builds(request_: Any, reason: str) -> None:
    with pytest.raises(SplitRefused, match=reason):
        sources_of(request_)


FOLDERS = {
    "once": {
        "k.cu": '#include "a.h"\n#include "b.h"\nint k = A + B;\n',
        "a.h": "#pragma once\n#define A 1\nint a;\n",
        "b.h": '#include "a.h"\n#define B 2\nint b;\n',
    },
    "guarded": {
        "k.cu": '#include "a.h"\n#include "a.h"\nint k;\n',
        "a.h": "#ifndef A_H\n#define A_H\nint a;\n#endif\n",
    },
    "twice on purpose": {
        "k.cu": '#define N 1\n#include "a.h"\n#undef N\n#define N 2\n#include "a.h"\n',
        "a.h": "int a(int (*x)[N]);\n",
    },
    "folders": {
        "src/k.cu": '#include "in/a.h"\n#include "../up.h"\nint k;\n',
        "src/in/a.h": '#include "b.h"\n#  include   "../c.h"  // beside\nint a;\n',
        "src/in/b.h": "int b;\n",
        "src/c.h": "int c;\n",
        "up.h": "int up;\n",
    },
    "include folders": {"k.cu": '#include "x.h"\nint k;\n', "inc/x.h": "int x;\n"},
    "the folder of the file comes first": {"s/k.cu": '#include "x.h"\n', "s/x.h": "int near;\n", "inc/x.h": "int far;\n"},
}  # fmt: skip


@pytest.mark.parametrize("folder", FOLDERS.values(), ids=FOLDERS.keys())
def test_pasted_headers_are_what_the_preprocessor_makes_of_them(folder: dict[str, str], tmp_path: Path) -> None:
    for name, text in folder.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    first, *headers = (SourceFile(name=name, text=text) for name, text in folder.items())
    pasted = paste_headers(first, headers, ["inc"])
    assert '#include"' not in pasted.replace(" ", "")

    def preprocessed(file: str, text: str | None = None) -> list[str]:
        command = ["g++", "-E", "-P", "-x", "c++", "-I", "inc", file]
        done = subprocess.run(command, cwd=tmp_path, input=text, capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert preprocessed("-", pasted) == preprocessed(first.name)


def test_unknown_headers_are_left_to_the_compiler() -> None:
    text = '#include "cuda_fp16.h"\n#include <vector>\n'
    assert paste_headers(SourceFile(name="k.cu", text=text), [], []) == text


def test_headers_that_include_each_other_without_a_guard_are_refused() -> None:
    a, b = SourceFile(name="a.h", text='#include "b.h"\n'), SourceFile(name="b.h", text='#include "a.h"\n')
    with pytest.raises(SplitRefused, match="include each other"):
        paste_headers(SourceFile(name="k.cu", text='#include "a.h"\n'), [a, b], [])


def test_headers_that_double_each_other_are_refused_in_time() -> None:
    chain = [SourceFile(name=f"{i}.h", text=f'#include "{i + 1}.h"\n' * 2) for i in range(19)]
    last = SourceFile(name="19.h", text="int x;\n")
    with pytest.raises(SplitRefused, match="too many local headers"):
        paste_headers(SourceFile(name="k.cu", text='#include "0.h"\n'), [*chain, last], [])
