"""PyTorch's builders with the fast build in front: who builds what, and what comes back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.utils.cpp_extension as stock

from dice.errors import HarnessError
from dice.kernels.builder.builder import Builder
from dice.kernels.fast_builds import fast_builds

SOURCE = "torch::Tensor doubled(torch::Tensor x) { return x * 2; }"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Calls of PyTorch's own builders, which build nothing here: (name, first argument)."""
    calls: list[tuple[str, Any]] = []
    for name in ("load_inline", "load"):
        monkeypatch.setattr(stock, name, lambda *args, _name=name, **_: calls.append((_name, args[0])) or "stock")
    return calls


@pytest.fixture
def builder(build_folder: Path) -> Builder:
    return Builder(build_folder, "cpu")


def test_a_source_is_built_fast_and_loaded(builder: Builder, asked: list[Any]) -> None:
    with fast_builds(lambda: builder):
        module = stock.load_inline("doubling", SOURCE, functions=["doubled"])
    assert isinstance(module, ModuleType)
    assert module.doubled(torch.tensor([3.0])).tolist() == [6.0]
    assert module.__name__ == "doubling"
    assert asked == []


def test_what_the_fast_routes_refuse_is_stocks(builder: Builder, asked: list[Any]) -> None:
    with fast_builds(lambda: builder):
        assert stock.load_inline("broken", "int f( {", functions=["f"]) == "stock"
        assert stock.load_inline("flagged", SOURCE, extra_cflags=["-fplugin=mine.so"]) == "stock"
        assert stock.load_inline(3) == "stock"  # pyright: ignore[reportCallIssue] - PyTorch refuses it itself
        assert stock.load("absent", ["/nowhere/x.cpp"]) == "stock"
        assert stock.load("program", [__file__], is_python_module=False, is_standalone=True) == "stock"
    assert [name for _, name in asked] == ["broken", "flagged", 3, "absent", "program"]


def test_a_machine_without_the_tools_is_said_once(asked: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    def make() -> Builder:
        raise HarnessError("no nvcc")

    with fast_builds(make):
        for name in ("a", "b"):
            assert stock.load_inline(name, SOURCE) == "stock"
    assert capsys.readouterr().err.count("no nvcc") == 1


def test_pytorchs_functions_come_back(asked: list[Any]) -> None:
    before = stock.load_inline, stock.load
    seen = []

    def fail() -> None:
        with fast_builds():
            seen.append(stock.load_inline is before[0])
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert seen == [False]
    assert (stock.load_inline, stock.load) == before


def test_a_script_runs_as_by_itself(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("VALUE = 7\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nimport beside\nfrom torch.utils.cpp_extension import load_inline\n"
        "print(sys.argv[1:], beside.VALUE, __name__, load_inline.__qualname__)\n"
    )
    command = [sys.executable, "-m", "dice.kernels.fast_builds", str(script), "--flag", "x"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["['--flag',", "'x']", "7", "__main__", "_Fast.function.<locals>.build"]
