"""A PyTorch program of the KernelBench format, executed: its model, its inputs, its outputs.

Programs are executed as the verifier's grader executes references: in this process, without a sandbox. A time limit ends
endless loops; what a program raises is a `Failed`. Callers enclose what they do in `contained()`.
"""

from __future__ import annotations

import ast
import contextlib
import re
import resource
import signal
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves, tree_map

TIME_LIMIT_S = 120
"""No comparison of a program takes a tenth of it; only an endless loop does."""
MEMORY_LIMIT_GIB = 8
"""No exam takes it; a program does whose transposed convolution, say, meets an exam's longer inputs: up to 900 GB."""
_SEED = 1


class Failed(Exception):
    """The program cannot be executed; says why. `error`, what it raised, becomes text only when the text is read: most
    failures are of programs that do not fit an exam, and PyTorch takes a millisecond to write an error's text."""

    def __init__(self, what: str, error: BaseException | None = None) -> None:
        super().__init__(what)
        self.what, self.error = what, error

    def __str__(self) -> str:
        if self.error is None:
            return self.what
        return f"{self.what}: {type(self.error).__name__}: {' '.join(str(self.error).split())[:200]}"


class OutOfTime(BaseException):
    """The time of `contained` is over. No Exception: neither a program nor `blamed` may take it for an error and go on,
    because the limit is given once."""


@contextlib.contextmanager
def blamed(what: str) -> Iterator[None]:
    """Whatever the block raises is the program's fault. Raises Failed."""
    try:
        yield
    except (KeyboardInterrupt, Failed, OutOfTime):
        raise
    except BaseException as error:  # noqa: BLE001  SystemExit of a program is a fault like any other
        raise Failed(what, error) from None


@contextlib.contextmanager
def contained() -> Iterator[None]:
    """Programs are executed in the block: without gradients and warnings, the random state kept. Raises Failed after
    TIME_LIMIT_S; a tensor beyond MEMORY_LIMIT_GIB is the program's error."""
    timed = threading.current_thread() is threading.main_thread()

    def stop(*_: object) -> None:
        raise OutOfTime(f"more than {TIME_LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, stop) if timed else None
    if timed:
        signal.alarm(TIME_LIMIT_S)
    state = torch.default_generator.get_state()
    try:
        with _little_memory() if timed else contextlib.nullcontext(), torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except OutOfTime as error:
        raise Failed(str(error)) from None
    finally:
        torch.default_generator.set_state(state)
        if timed:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _little_memory() -> Iterator[None]:
    """Allocations fail in the block once this process has MEMORY_LIMIT_GIB of addresses more than now. Of the main thread
    only, as the alarm: two threads would give each other's limit back."""
    limit, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    lower = pages * resource.getpagesize() + (MEMORY_LIMIT_GIB << 30)
    resource.setrlimit(resource.RLIMIT_AS, (lower if limit == resource.RLIM_INFINITY else min(lower, limit), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def seeded() -> None:
    """Draw the same random numbers again. Of the CPU only, because torch.manual_seed is slow."""
    torch.default_generator.manual_seed(_SEED)


@dataclass
class Program:
    """One program. Raises Failed where its code cannot be executed or lacks a name of the format."""

    code: str
    namespace: dict[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.namespace = {"__name__": "program"}
        with blamed("the file"):
            exec(compile(on_cpu(self.code), "<program>", "exec"), self.namespace)
        for name in ("Model", "get_inputs", "get_init_inputs"):
            if name not in self.namespace:
                raise Failed(f"the file defines no {name}")

    def arguments(self) -> list[Any]:
        """What get_init_inputs() gives; seeded."""
        with blamed("get_init_inputs"):
            seeded()
            return list(self.namespace["get_init_inputs"]())

    def inputs(self) -> list[Any]:
        """What get_inputs() gives; seeded."""
        with blamed("get_inputs"):
            seeded()
            return list(self.namespace["get_inputs"]())

    def model(self, arguments: list[Any]) -> torch.nn.Module:
        """`Model(*arguments)` with seeded weights, in the mode in which it is made."""
        with blamed("Model"):
            seeded()
            return self.namespace["Model"](*arguments)


class _OnCpu(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        names_gpu = isinstance(node.value, str) and re.fullmatch(r"cuda(:\d+)?", node.value)
        return ast.Constant("cpu") if names_gpu else node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "cuda":
            return ast.Call(ast.Attribute(node.func.value, "cpu", ast.Load()), [], [])
        return node


def on_cpu(code: str) -> ast.Module | str:
    """The program with the CPU in place of a GPU, so that no result depends on the machine. Raises SyntaxError."""
    return ast.fix_missing_locations(_OnCpu().visit(ast.parse(code))) if "cuda" in code else code


def run(model: torch.nn.Module, inputs: list[Any]) -> list[Any]:
    """The leaves of the model's outputs on copies of `inputs`; seeded. Raises Failed."""
    copies = [one.clone() if torch.is_tensor(one) else tree_map(_copied, one) for one in inputs]
    with blamed("forward"):
        seeded()
        out = model(*copies)
        return [out] if torch.is_tensor(out) else tree_leaves(out)


def _copied(leaf: Any) -> Any:
    return leaf.clone() if torch.is_tensor(leaf) else leaf


def without_data() -> FakeTensorMode:
    """Programs in this context make tensors that have shapes and dtypes and no data."""
    return FakeTensorMode(allow_non_fake_inputs=True)


def elements(inputs: list[Any]) -> int:
    """Elements of all tensors in `inputs`."""
    return sum(leaf.numel() for leaf in tree_leaves(inputs) if torch.is_tensor(leaf))


def shrunk(code: str, longest: int) -> str:
    """The program with smaller inputs: each size outside of its classes is halved until it is at most `longest`."""
    tree = ast.parse(code)
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef):
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Constant) and type(node.value) is int:
                while node.value > longest:
                    node.value = (node.value + 1) // 2
    return ast.unparse(tree)
