"""Other values for the constants of a model, told by their value alone.

A candidate may call its weights as it likes, pack two into one, or compute with them in `__init__`. So no state can be
handed over, and no name says which of its tensors is a norm's weight. But what begins as ones in the reference begins as
ones there too. While its model is made, and once more when it is there, every such number becomes another one, the same
for all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

_CLOSE = 1e-6
"""Of a constant, relatively: it may have been rounded to a narrower type and back, or written in decimals."""
_DEPTH = 4
"""Of containers among a module's attributes."""
FILLING_MODULES: tuple[Any, ...] = (
    torch.nn.modules.batchnorm._NormBase,
    torch.nn.LayerNorm,
    torch.nn.GroupNorm,
    torch.nn.RMSNorm,
    torch.nn.PReLU,
)
"""Modules of PyTorch's that fill constants in."""
_FILLING = ("ones_", "zeros_", "constant_")
"""Functions of `torch.nn.init` that do."""


@dataclass(frozen=True)
class Move:
    """One constant gets another value."""

    old: float
    new: float
    constants: tuple[float, ...]
    """All constants of the reference, `old` among them."""
    mixed: bool
    """Also in tensors that have other numbers than constants: weights with zeros among them, or packed with a bias."""

    def of(self, tensor: torch.Tensor) -> None:
        """Move it in a tensor, in place."""
        if not tensor.is_floating_point() or tensor.layout is not torch.strided or not tensor.numel():
            return
        if self.mixed or bool(_are_among(tensor, self.constants).all()):
            tensor.masked_fill_(_are_among(tensor, (self.old,)), self.new)


@dataclass
class Places:
    """Where a model has room for constants, in elements."""

    moved: int = 0
    """Those that have the new value."""
    others: int = 0
    """Those of tensors that are the same everywhere, of a value that no constant of the reference has."""


def _are_among(tensor: torch.Tensor, constants: Sequence[float]) -> torch.Tensor:
    found = torch.zeros_like(tensor, dtype=torch.bool)
    for constant in constants:
        found |= (tensor - constant).abs() <= _CLOSE * abs(constant)
    return found


@contextlib.contextmanager
def moving(move: Move) -> Iterator[None]:
    """In the block, what modules register, and what PyTorch fills in, has the new value at once: a model that computes with
    it in `__init__` follows. Draws nothing."""
    module, init = torch.nn.Module, torch.nn.init
    names: list[tuple[Any, str]] = [(kind, "reset_parameters") for kind in FILLING_MODULES]
    names += [(module, "register_parameter"), (module, "register_buffer"), *((init, name) for name in _FILLING)]
    originals = [(owner, name, getattr(owner, name)) for owner, name in names]

    def reset_and_move(original: Any) -> Any:
        def reset_parameters(self: torch.nn.Module) -> None:
            original(self)
            for tensor in [*self.parameters(recurse=False), *self.buffers(recurse=False)]:
                _move_one(move, tensor)

        return reset_parameters

    def register_and_move(original: Any) -> Any:
        def register(self: torch.nn.Module, name: str, tensor: Any = None, *more: Any, **options: Any) -> None:
            if torch.is_tensor(tensor) and not isinstance(tensor, torch.nn.Parameter):
                tensor = tensor.clone()  # it may be a row of a table that others read
            if torch.is_tensor(tensor):
                _move_one(move, tensor)
            original(self, name, tensor, *more, **options)

        return register

    def fill_and_move(original: Any) -> Any:
        def fill(tensor: torch.Tensor, *values: Any, **named: Any) -> torch.Tensor:
            result = original(tensor, *values, **named)
            _move_one(move, tensor)
            return result

        return fill

    for owner, name, original in originals:
        made = reset_and_move if name == "reset_parameters" else register_and_move if owner is module else fill_and_move
        setattr(owner, name, made(original))
    try:
        yield
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)


def _move_one(move: Move, tensor: torch.Tensor) -> None:
    with torch.no_grad():
        move.of(tensor)


def move_all(model: torch.nn.Module, move: Move) -> Places:
    """Move the constant in all tensors that a model leads to: its state, and what its modules have as attributes."""
    places, seen = Places(), set[int]()
    for tensor in _tensors(model):
        if id(tensor) in seen or not tensor.is_floating_point() or tensor.layout is not torch.strided:
            continue
        seen.add(id(tensor))
        _move_one(move, tensor)
        flat = tensor.detach().reshape(-1)
        places.moved += int(_are_among(flat, (move.new,)).sum())
        known = (move.new, *move.constants)
        if flat.numel() and bool((flat == flat[0]).all()) and not bool(_are_among(flat[:1], known)):
            places.others += flat.numel()
    return places


def _tensors(model: torch.nn.Module) -> Iterator[torch.Tensor]:
    for module in model.modules():
        yield from module.parameters(recurse=False)
        yield from module.buffers(recurse=False)
        for name, value in vars(module).items():
            if name not in ("_parameters", "_buffers", "_modules"):
                yield from _within(value, _DEPTH)


def _within(value: Any, depth: int) -> Iterator[torch.Tensor]:
    if torch.is_tensor(value):
        yield value
    elif depth and isinstance(value, list | tuple | set):
        for part in value:
            yield from _within(part, depth - 1)
    elif depth and isinstance(value, dict):
        for part in value.values():
            yield from _within(part, depth - 1)
    elif depth and hasattr(value, "__dict__") and not isinstance(value, type | torch.nn.Module) and _is_plain(value):
        yield from _within(vars(value), depth - 1)


def _is_plain(value: Any) -> bool:
    """Whether it is an object of the candidate's own class, that holds what a module might."""
    return type(value).__module__ == "candidate"
