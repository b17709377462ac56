"""PyTorch's builder of extensions, as a candidate sees it: modules come back, refused builds raise, uses are kept."""

from __future__ import annotations

import inspect
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import torch.utils.cpp_extension

from dice.kernels.candidate.extension_call import load_inline
from dice.kernels.candidate.extension_proxy import BUILD_KEY, ExtensionProxy
from dice.kernels.records.extension import BuildResult, LaunchCount
from dice.kernels.records.object_facts import append_facts

MODULE = r"""
#include <Python.h>
static PyObject* one(PyObject* self, PyObject* args) { return PyLong_FromLong(1); }
static PyMethodDef methods[] = {{"one", one, METH_NOARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "plain", NULL, -1, methods};
PyMODINIT_FUNC PyInit_plain(void) { return PyModule_Create(&definition); }
"""


class Grader:
    """Answers requests: with the object, or with a refusal."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.asked: list[dict[str, Any]] = []
        self.given: list[int] = []
        self.result = BuildResult(status="built", key="k", route="split")

    def __call__(self, message: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
        self.asked.append(message)
        fds = [os.open(self.path, os.O_RDONLY)] if self.result.status == "built" else []
        self.given += fds
        return {"result": self.result.model_dump(mode="json")}, fds


@pytest.fixture
def grader(tmp_path: Path) -> Grader:
    path = tmp_path / "plain.so"
    (tmp_path / "plain.c").write_text(MODULE)
    include = sysconfig.get_paths()["include"]
    subprocess.run(["gcc", "-shared", "-fPIC", f"-I{include}", "plain.c", "-o", path], cwd=tmp_path, check=True)
    append_facts(path, {"libraries": [], "table": False, "module": "plain"})
    return Grader(path)


def closed(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return True
    return False


@pytest.mark.parametrize(("launches", "counted"), [("none", True), ("unknown", True), ("counted", False)])
def test_a_module_comes_back_and_its_calls_are_counted(grader: Grader, launches: LaunchCount, counted: bool) -> None:
    grader.result = grader.result.model_copy(update={"launches": launches})
    proxy = ExtensionProxy(grader)
    module = proxy.load(load_inline("mine", "int f();", functions=["f"]))
    assert module.__name__ == "mine"
    (asked,) = grader.asked
    assert (asked["op"], asked["request"]["name"], asked["request"]["cpp_sources"]) == ("build", "mine", ["int f();"])
    assert all(closed(fd) for fd in grader.given)
    module.one()
    assert proxy.uses() == [{"loaded": True, "calls_forward": None}]
    proxy.start_counting()
    assert [module.one(), module.one()] == [1, 1]
    proxy.keep_calls()
    module.one()
    assert proxy.uses() == [{"loaded": True, "calls_forward": 2 if counted else None}]


def test_a_refused_build_raises_and_names_itself(grader: Grader) -> None:
    grader.result = BuildResult(status="compile_error", key="the key", route="split", message="cuda.cu(1): error")
    proxy = ExtensionProxy(grader)
    with pytest.raises(RuntimeError, match=r"Error building extension 'mine': cuda.cu\(1\): error") as refused:
        proxy.load(load_inline("mine", "int f();"))
    assert getattr(refused.value, BUILD_KEY) == "the key"
    assert proxy.uses() == [{"loaded": False, "calls_forward": None}]


def test_an_object_that_cannot_be_imported_is_not_loaded(grader: Grader) -> None:
    append_facts(grader.path, {"libraries": [], "table": False, "module": "another"})
    proxy = ExtensionProxy(grader)
    with pytest.raises(ImportError):
        proxy.load(load_inline("mine", "int f();"))
    assert proxy.uses() == [{"loaded": False, "calls_forward": None}]
    assert all(closed(fd) for fd in grader.given)


def test_it_stands_in_for_pytorchs_functions_and_looks_like_them(
    grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    originals = {name: getattr(torch.utils.cpp_extension, name) for name in ("load_inline", "load")}
    for name, original in originals.items():
        monkeypatch.setattr(torch.utils.cpp_extension, name, original)  # put back afterwards
    ExtensionProxy(grader).install()
    for name, original in originals.items():
        function = getattr(torch.utils.cpp_extension, name)
        assert function is not original
        for look in (inspect.getsource, inspect.getfile, inspect.signature, inspect.getmodule, repr_without_address):
            assert look(function) == look(original)
        for attribute in (
            "__name__",
            "__qualname__",
            "__module__",
            "__doc__",
            "__defaults__",
            "__closure__",
            "__dict__",
        ):
            assert getattr(function, attribute) == getattr(original, attribute), attribute
        assert function.__globals__ is original.__globals__
    load_inline: Any = torch.utils.cpp_extension.load_inline
    module = load_inline("mine", ["int f();"], with_pytorch_error_handling=False, verbose=True)
    assert module.one() == 1
    (asked,) = grader.asked
    assert asked["request"]["with_pytorch_error_handling"] is False
    with pytest.raises(TypeError, match=r"load_inline\(\) missing 2 required positional arguments"):
        load_inline()
    with pytest.raises(AttributeError, match="insert"):
        load_inline("mine", ("int f();",))


def repr_without_address(function: object) -> str:
    return repr(function).partition(" at 0x")[0]
