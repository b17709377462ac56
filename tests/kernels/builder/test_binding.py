"""The binding table: what `functions=[...]` and a hand-written PYBIND11_MODULE say, without pybind11 in the unit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dice.kernels.builder.binding import BindingRefused, table_from_functions, table_from_module

# Says what the table hands over, in place of csrc/extension/binding.h and the module that binding.cpp makes of it.
HEADER = r"""
#include <cstdio>
#include <string>
struct _object {};
namespace dice_binding {
struct Argument { std::string text; };
struct Function { std::string text; };
inline std::string shown(int x) { return std::to_string(x); }
inline std::string shown(bool x) { return x ? "true" : "false"; }
inline std::string shown(double x) { return std::to_string(x).substr(0, 4); }
inline std::string shown(const std::string& x) { return "'" + x + "'"; }
inline Argument argument(const char* name) { return {name}; }
template <class T> Argument argument(const char* name, const T* value) { return {name + ("=" + shown(*value))}; }
template <class R, class... P>
Function describe(const char* name, R (*f)(P...), const char* doc, bool torch_errors, const Argument* arguments) {
  std::string text = std::string(name) + "/" + std::to_string(sizeof...(P)) + "/" + (doc ? doc : "-");
  text += torch_errors ? "/torch" : "/plain";
  for (unsigned i = 0; arguments && i < sizeof...(P); ++i) text += " " + arguments[i].text;
  return {text};
}
template <class Lambda, class = decltype(+std::declval<Lambda>())>
Function describe(const char* name, Lambda lambda, const char* doc, bool torch_errors, const Argument* arguments) {
  return describe(name, +lambda, doc, torch_errors, arguments);
}
}
_object* dice_create_module(const char* name, const char* doc, const dice_binding::Function* functions, int count) {
  std::printf("%s (%s):", name, doc ? doc : "-");
  for (int i = 0; i < count; ++i) std::printf(" [%s]", functions[i].text.c_str());
  return nullptr;
}
int f(int x) { return x; }
int g(int x, double y) { return x; }
int h(int x) { return x; }
int h(double x) { return 0; }
template <class T> T t(T x) { return x; }
namespace n { int inner(int a, int b, bool c) { return a; } }
struct S { static int member(int x) { return x; } };
"""


def said(table: str, folder: Path, module: str = "mine") -> str:
    (folder / "main.cpp").write_text(f"{HEADER}\n{table}\nint main() {{ PyInit_{module}(); }}\n")
    subprocess.run(["g++", "-std=c++17", "-O0", "main.cpp", "-o", "main"], cwd=folder, check=True)
    return subprocess.run([folder / "main"], capture_output=True, text=True, check=True).stdout


def test_functions_by_name_with_their_docstrings(tmp_path: Path) -> None:
    table = table_from_functions([("f", "f"), ("g", "two numbers")], torch_errors=True, module="mine")
    assert said(table, tmp_path) == "mine (-): [f/1/f/torch] [g/2/two numbers/torch]"
    plain = table_from_functions([("f", "f")], torch_errors=False, module="other")
    assert said(plain, tmp_path, "other") == "other (-): [f/1/f/plain]"


def test_a_module_of_nothing(tmp_path: Path) -> None:
    assert said(table_from_functions([], torch_errors=True, module="mine"), tmp_path) == "mine (-):"
    assert said(table_from_module("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { }", "mine"), tmp_path) == "mine (-):"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('m.def("f", &f);', "[f/1/-/plain]"),
        ('m.def("f", f);', "[f/1/-/plain]"),
        ('m.def("forward", &f, "does f");', "[forward/1/does f/plain]"),
        ('m.def("f", &f, "does " "f");', "[f/1/does f/plain]"),
        ('m.def("f", &f).def("g", &g);', "[f/1/-/plain] [g/2/-/plain]"),
        ('m.def("f", torch::wrap_pybind_function(f), "d");', "[f/1/d/torch]"),
        ('m.def("g", &g, py::arg("x"), py::arg("y"));', "[g/2/-/plain x y]"),
        ('m.def("g", &g, "d", pybind11::arg("x") = 3, py::arg("y") = 2.5);', "[g/2/d/plain x=3 y=2.50]"),
        ('m.def("i", &n::inner, py::arg("a"), py::arg("b") = 1 + 2, py::arg("c") = true);', "[i/3/-/plain a b=3 c=true]"),
        ('m.def("h", static_cast<int (*)(double)>(&h));', "[h/1/-/plain]"),
        ('m.def("h", (int (*)(int))&h, "cast");', "[h/1/cast/plain]"),
        ('m.def("t", &t<double>);', "[t/1/-/plain]"),
        ('m.def("s", &S::member);', "[s/1/-/plain]"),
        ('m.def("l", [](int x, int y) { return x + y; }, "adds");', "[l/2/adds/plain]"),
        ('// m.def("f", &f);\nm.def("g", &g); /* none */', "[g/2/-/plain]"),
    ],
)  # fmt: skip
def test_a_hand_written_module(tmp_path: Path, body: str, expected: str) -> None:
    table = table_from_module(f"PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ {body} }}", "mine")
    assert said(table, tmp_path) == f"mine (-): {expected}"


def test_a_module_with_a_docstring_and_another_variable(tmp_path: Path) -> None:
    text = 'PYBIND11_MODULE(name, handle) { handle.doc() = "a module"; handle.def("f", &f); }'
    assert said(table_from_module(text, "mine"), tmp_path) == "mine (a module): [f/1/-/plain]"


def test_a_string_as_default_is_a_string_and_no_pointer(tmp_path: Path) -> None:
    table = table_from_module('PYBIND11_MODULE(x, m) { m.def("f", &f, py::arg("mode") = "sum"); }', "mine")
    assert said(table, tmp_path) == "mine (-): [f/1/-/plain mode='sum']"


@pytest.mark.parametrize(
    "body",
    [
        'm.def("f", py::overload_cast<int>(&h));',
        'm.def("f", &f, py::call_guard<py::gil_scoped_release>());',
        'm.def("f", &f, py::return_value_policy::move);',
        'm.attr("version") = 1;',
        'py::class_<S>(m, "S");',
        'auto sub = m.def_submodule("s");',
        'm.def("f" + name, &f);',
        "m.def(name, &f);",
        "m.doc() = text;",
        'if (true) { m.def("f", &f); }',
        '#ifdef X\nm.def("f", &f);\n#endif\n',
        'm.def("f", &f, py::arg("x").noconvert());',
        'm.def("f", &f, py::kw_only());',
        'm.def("f");',
        'm.def("f", &f)',
    ],
)
def test_what_the_table_cannot_say_is_left_to_pybind11(body: str) -> None:
    with pytest.raises(BindingRefused):
        table_from_module(f"PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ {body} }}", "mine")


@pytest.mark.parametrize("text", ["PYBIND11_MODULE(m) { }", "PYBIND11_MODULE(a, m, mod_gil_not_used()) { }", "X"])
def test_an_unusual_module_is_left_to_pybind11(text: str) -> None:
    with pytest.raises(BindingRefused):
        table_from_module(text, "mine")
