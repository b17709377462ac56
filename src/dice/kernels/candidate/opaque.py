"""Functions that take the place of PyTorch's or Python's own and lead nowhere.

A candidate may look at `load_inline` as at any function: its source, signature, module, globals, closure, code. What
`stand_in` makes has those of the original; the way to our own function is a constant of its code, a built-in function
without attributes, behind which lies C memory.
"""

from __future__ import annotations

import ctypes
import inspect
import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Any

_CALL = "\0call"
"""Stands in the compiled text where the built-in function goes."""
_METH_VARARGS = 1
_Method = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.py_object)


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


_kept: list[Any] = []
"""What the interpreter refers to by bare pointers."""


def stand_in(original: Any, call: Callable[..., Any], signature: inspect.Signature | None = None) -> FunctionType:
    """A function that does what `call` does, and otherwise looks like `original`.

    `call` gets every parameter by position, in the order of the signature (of `*args` a tuple, of `**kwargs` a dict), and
    raises what the caller is to see.
    `signature`: of an original that has none, such as built-in functions.
    """
    signature = signature or inspect.signature(original)
    bare = signature.replace(
        parameters=[
            p.replace(annotation=p.empty, default=p.empty if p.default is p.empty else _Dots())
            for p in signature.parameters.values()
        ],
        return_annotation=inspect.Signature.empty,
    )
    name = getattr(original, "__name__", "call")  # perhaps `<lambda>`: no name for a text
    text = f"def made{bare}:\n found = {_CALL!r}({', '.join(signature.parameters)})\n"
    text += " if found[0]: return found[1]\n raise found[1]\n"
    made: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # a string is not callable; it will be none
        code = next(item for item in compile(text, "made", "exec").co_consts if hasattr(item, "co_code"))
    known = getattr(original, "__code__", None)
    code = code.replace(
        co_consts=tuple(_builtin(name, call) if item == _CALL else item for item in code.co_consts),
        co_filename=known.co_filename if known else "<frozen importlib._bootstrap>",
        co_firstlineno=known.co_firstlineno if known else 1,
        co_name=name,
        co_qualname=getattr(original, "__qualname__", name),
    )
    function = FunctionType(code, getattr(original, "__globals__", made), name)
    function.__defaults__ = getattr(original, "__defaults__", None)
    function.__kwdefaults__ = getattr(original, "__kwdefaults__", None)
    for attribute in ("__doc__", "__module__", "__qualname__", "__annotations__"):
        if hasattr(original, attribute):
            setattr(function, attribute, getattr(original, attribute))
    return function


class _Dots:
    def __repr__(self) -> str:
        return "..."


def _bare(error: BaseException | None) -> BaseException | None:
    """The exception, and those that it comes from, without the frames in which they were raised."""
    step = error
    while step is not None and step.__traceback__ is not None:
        step.__traceback__ = None
        step = step.__cause__ or step.__context__
    return error


def _builtin(name: str, call: Callable[..., Any]) -> Any:
    """A built-in function that returns (True, result of `call`), or (False, what it raised)."""

    def run(_: Any, arguments: tuple[Any, ...]) -> tuple[bool, Any]:
        try:
            return True, call(*arguments)
        except BaseException as error:  # noqa: BLE001 - a callback from C cannot raise
            return False, _bare(error)

    thunk = _Method(run)
    method = _MethodDef(name.encode(), ctypes.cast(thunk, ctypes.c_void_p), _METH_VARARGS, None)
    _kept.extend((thunk, method))
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.c_void_p]
    return make(ctypes.byref(method), None, None)
