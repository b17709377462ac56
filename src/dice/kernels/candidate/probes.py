"""Observations inside the candidate's process: patches, operators that ran, returned objects.

`dice.kernels.checks` decides what they mean. No probe is active unless the grader starts it, so timed calls run without
probes. Order of use:

    trail = AuditTrail(candidate_path, scratch); trail.install()      # audit_events.py; before the candidate's code
    before = Snapshot()                                               # after the executor's own patches
    with trail.phase("import"): ...                                   # then "init", "forward"
    changes = compare(before, "import"); ...                          # again after init and forward
    with OpRecorder() as ops, ExceptionTrace(candidate_path) as hidden: outputs = model(*inputs)
    facts = output_facts(outputs)

Native code of the candidate can forge all of it; `records.evidence` says what follows from that.
"""

from __future__ import annotations

import builtins
import contextlib
import inspect
import math
import operator
import os
import random
import signal
import statistics
import sys
import threading
import time
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from dice.kernels.candidate.opaque import stand_in
from dice.kernels.candidate.settings import settings
from dice.kernels.records.evidence import Change, ChangeKind, OpUse, OutputFacts, Phase
from dice.kernels.sandbox import values

_THIS = sys.modules[__name__]
"""Kept: in a candidate's process the verifier's modules go by no name."""


def _guarded_namespaces() -> dict[str, Any]:
    """Modules and classes whose callables a candidate must not replace."""
    return {
        "builtins": builtins,
        "math": math,
        "os": os,
        "random": random,
        "statistics": statistics,
        "threading": threading,
        "time": time,
        "torch": torch,
        "torch.Tensor": torch.Tensor,
        "torch.autograd.Function": torch.autograd.Function,
        "torch.cuda": torch.cuda,
        "torch.cuda.Event": torch.cuda.Event,
        "torch.cuda.Stream": torch.cuda.Stream,
        "torch.linalg": torch.linalg,
        "torch.nn": torch.nn,
        "torch.nn.Module": torch.nn.Module,
        "torch.nn.functional": torch.nn.functional,
        "torch.testing": torch.testing,
        "torch.utils._pytree": _pytree,
        "dice.kernels.sandbox.values": values,
        "dice.kernels.candidate.probes": _THIS,
    }


def _hooks() -> dict[str, str]:
    hooks: dict[str, Any] = {
        "sys.settrace": sys.gettrace(),
        "sys.setprofile": sys.getprofile(),
        "sys.excepthook": sys.excepthook,
        "threading.excepthook": threading.excepthook,
    }
    for name in ("SIGALRM", "SIGTERM", "SIGINT", "SIGSEGV", "SIGCHLD", "SIGUSR1", "SIGUSR2", "SIGPROF"):
        hooks[f"signal.{name}"] = signal.getsignal(getattr(signal, name))
    return {name: _describe(value) for name, value in hooks.items()}


def _describe(value: object) -> str:
    name = getattr(value, "__qualname__", None)
    return f"{getattr(value, '__module__', '')}.{name} at {id(value):#x}" if name else str(value)


class Snapshot:
    """The guarded functions, flags, modules, hooks and environment of this process, taken in about half a millisecond.

    It keeps references, so an id is never reused.
    """

    def __init__(self) -> None:
        self.names: dict[str, dict[str, Any]] = {
            where: dict(_vars(namespace)) for where, namespace in _guarded_namespaces().items()
        }
        self.codes: list[tuple[str, dict[str, CodeType]]] = [
            (where, {name: value.__code__ for name, value in names.items() if _TRUE_TYPE(value) is FunctionType})
            for where, names in self.names.items()
        ]
        self.modules: dict[str, ModuleType] = dict(sys.modules)
        self.flags = settings()
        self.hooks = _hooks()
        self.environment = dict(os.environ)


def _is_guarded(value: object) -> bool:
    return _callable(value) or _isinstance(value, staticmethod | classmethod | property)


def _are_the_same(before: dict[Any, Any], now: Mapping[Any, Any]) -> bool:
    """Whether two hold the same objects by the same names in the same order. No method of theirs is called."""
    same_names = _len(before) == _len(now) and _all(_map(_IS, before, now))
    return same_names and _all(_map(_IS, before.values(), now.values()))


def compare(before: Snapshot, phase: Phase) -> list[Change]:
    """Changes since `before`: replaced or removed names, and new names that hide an inherited one."""
    changes: list[Change] = []

    def note(kind: ChangeKind, name: str, old: object, new: object) -> None:
        changes.append(Change(kind=kind, name=name, phase=phase, before=str(old)[:200], after=str(new)[:200]))

    guarded = _guarded_namespaces()
    for where, codes in before.codes:
        names, namespace = before.names[where], guarded[where]
        now = _vars(namespace)
        if not _are_the_same(names, now):
            if _isinstance(namespace, type):
                for name in now.keys() - names.keys():
                    if any(name in _vars(base) for base in namespace.__mro__[1:]):
                        note("function", f"{where}.{name}", "inherited", _describe(now[name]))
            for name, value in names.items():
                current = now.get(name)
                if current is not value and _is_guarded(value):
                    note("function", f"{where}.{name}", _describe(value), _describe(current))
        for name, code in codes.items():
            if names[name].__code__ is not code and now.get(name) is names[name]:
                note("function", f"{where}.{name}", "its own code", "another code object")
    if not _are_the_same(before.modules, sys.modules):
        for name, module in before.modules.items():
            if sys.modules.get(name) is not module:
                note("module", f"sys.modules[{name}]", _describe(module), _describe(sys.modules.get(name)))
    states: tuple[tuple[ChangeKind, dict[str, str], dict[str, str]], ...] = (
        ("flag", before.flags, settings()),
        ("hook", before.hooks, _hooks()),
        ("environment", before.environment, dict(os.environ)),
    )
    for kind, old, new in states:
        for name in sorted(old.keys() | new.keys()):
            if old.get(name) != new.get(name):
                note(kind, name, old.get(name), new.get(name))
    return changes


class OpRecorder(TorchDispatchMode):
    """Records the ATen operators that run in the block, including those called from C++ extensions.

    Record reference and candidate in the same way (inputs, grad mode), so that composite operators split equally.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ops: dict[str, OpUse] = {}
        """`aten::mm` -> use; overload names are dropped."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        add_use(self.ops, func._schema.name, use_of(func, args, kwargs or {}, result))
        return result


def use_of(func: Any, args: Any, kwargs: Any, result: Any) -> OpUse:
    """What one call of an operator took, gave and multiplied."""
    name = func._schema.name
    out = _elements(result)
    touched = _elements((args, kwargs)) + out
    products = _products(func, args, kwargs, result)
    return OpUse(
        count=1,
        elements=touched,
        least=touched,
        bias=out * _biases(func, args),
        products=products,
        largest=_largest(name, products, args, result),
    )


def add_use(ops: dict[str, OpUse], name: str, use: OpUse) -> None:
    """Add one call to those of the same operator."""
    before = ops.get(name)
    if before is None:
        ops[name] = use
        return
    before.least = _least(before.least, use.least)
    before.count += 1
    before.elements += use.elements
    before.bias += use.bias
    before.products += use.products
    before.largest += use.largest


_ALIKE = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: torch.ops.aten._scaled_dot_product_flash_attention
}
"""Operators of which PyTorch counts only the twin for a GPU."""


def _products(func: Any, args: Any, kwargs: Any, result: Any) -> int:
    """Multiplications of real numbers, by PyTorch's own formulas. A complex product has four."""
    count = flop_registry.get(_ALIKE.get(func.overloadpacket, func.overloadpacket))
    operations = 0
    with contextlib.suppress(Exception):  # a formula that knows no sparse or quantized tensor must end no candidate
        operations = count(*args, **kwargs, out_val=result) if count else 0
    is_complex = any(torch.is_tensor(leaf) and leaf.is_complex() for leaf in tree_leaves(args))
    return operations // 2 * (4 if is_complex else 1)


def _elements(tree: Any) -> int:
    return _sum(_numbers(leaf) for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor))


def _numbers(tensor: torch.Tensor) -> int:
    """Numbers in a tensor; of a sparse one those that it holds, which may be more than its shape has."""
    return tensor._values().numel() if tensor.layout is torch.sparse_coo else tensor.numel()


def _biases(func: Any, args: tuple[Any, ...]) -> int:
    """Steps of its own that a bias is in a product or convolution, and weight and bias are in a norm."""
    operator = func._schema.name.rpartition("::")[2]
    if operator in ("addmm", "baddbmm", "addmv", "addbmm"):
        return 1
    given = {a.name for a, value in zip(func._schema.arguments, args, strict=False) if isinstance(value, torch.Tensor)}
    return len(given & {"weight", "bias"}) if "norm" in operator else int("convolution" in operator and "bias" in given)


def _largest(name: str, products: int, args: Any, result: Any) -> int:
    within = 0
    with contextlib.suppress(Exception):  # a sparse or quantized tensor
        if "attention" in name:  # scores: each is a sum over the width of a key, and goes into one over that of a value
            within = products // (args[1].shape[-1] + args[2].shape[-1])
        elif name == "aten::convolution":  # columns: each goes into every output of its group
            within = products // args[1].shape[0] * args[8]
    return _most([within, *(_numbers(leaf) for leaf in tree_leaves((args, result)) if isinstance(leaf, torch.Tensor))])


class CallCounter:
    """Counts calls into the Python-visible functions of a loaded extension (about 0.1 us a call).

    Needed only where the build has no launch table: `stock` and other routes with pybind11's own registration.
    """

    def __init__(self, module: ModuleType) -> None:
        self.calls = 0
        for name, value in list(vars(module).items()):
            if callable(value) and not isinstance(value, _TRUE_TYPE) and not name.startswith("_"):
                setattr(module, name, self._counted(value))

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            self.calls += 1
            return function(*args, **kwargs)

        return stand_in(function, call, _ANY_ARGUMENTS)


_ANY_ARGUMENTS = inspect.signature(lambda *args, **kwargs: None)


def output_facts(outputs: Any) -> OutputFacts:
    """Facts about the returned objects, found without calling any of their methods.

    `outputs`: a pytree. Uses only accessors of the base class, so that no override of a subclass runs here.
    """
    facts = OutputFacts()
    leaves = tree_leaves(outputs)
    facts.foreign_types += [_named(_TRUE_TYPE(leaf)) for leaf in leaves if _opens_by_itself(_TRUE_TYPE(leaf))]
    for tensor in (leaf for leaf in leaves if isinstance(leaf, torch.Tensor)):
        kind = _TRUE_TYPE(tensor)
        if kind not in (torch.Tensor, torch.nn.Parameter):
            facts.foreign_types.append(_named(kind))
        facts.instance_attributes += sorted(object.__getattribute__(tensor, "__dict__"))
    return facts


# Bound once, at the base class: neither a subclass nor a patched attribute is used.
_TRUE_TYPE = type
_sum, _least, _most = sum, min, max
_IS = operator.is_
_all, _callable, _isinstance, _len, _map, _vars = all, callable, isinstance, len, map, vars
_layout = torch.Tensor.layout.__get__  # pyright: ignore[reportAttributeAccessIssue]


def _named(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _opens_by_itself(kind: type) -> bool:
    """Whether it is a container class whose own code runs when its items are read."""
    base = next((base for base in (tuple, list, dict) if issubclass(kind, base)), None)
    names = ("__iter__", "__len__", "__getitem__", "keys", "values", "items")
    return base is not None and any(getattr(kind, name, None) is not getattr(base, name, None) for name in names)


def storage_address(tensor: torch.Tensor) -> int:
    """Address of the tensor's storage; 0 when it has none, and for subclasses, whose own code would run."""
    if _TRUE_TYPE(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return 0
    if _layout(tensor) is not torch.strided:
        return 0
    return torch.Tensor.untyped_storage(tensor).data_ptr()


def state_of(module: torch.nn.Module | None) -> list[torch.Tensor]:
    """Parameters and buffers of a module and its parts."""
    if module is None:
        return []
    found: list[torch.Tensor] = []
    modules, seen = [module], set()
    while modules:
        current = modules.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        own = object.__getattribute__(current, "__dict__")  # no accessor of the candidate runs
        for name in ("_parameters", "_buffers"):
            found += [tensor for tensor in dict.values(own.get(name, {})) if tensor is not None]
        modules += [part for part in dict.values(own.get("_modules", {})) if part is not None]
    return found


def python_threads() -> list[str]:
    """Names of live Python threads other than the main one."""
    return [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
