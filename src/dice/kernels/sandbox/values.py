"""Nested values as a JSON header and one flat buffer: how inputs and outputs cross between processes.

`lay_out` looks at a value and gives its header (plain JSON) and the tensors to copy; `write` copies them into a shared
buffer; `outline` checks a header and says what it describes; `read` rebuilds the value from a header and a buffer. A
header that came from a candidate is checked completely before a byte is touched: nothing is unpickled, evaluated or
looked up by name outside the tables below.

Known: tensors of every dense dtype, any layout of strides (rebuilt contiguous), list, tuple, named tuple (rebuilt as a
tuple), dict, bool, int of up to 256 bits, float, complex, str, None, torch.dtype, torch.device, torch.Size. Of a view
that repeats elements (`expand`, sliding windows), only its storage crosses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

ALIGNMENT = 256
MAX_DEPTH = 32
MAX_NODES = 20_000
MAX_TEXT = 1 << 20
MAX_DIMENSIONS = 64
MAX_INTEGER_BITS = 256
"""Far from what a float cannot hold, and from what Python refuses to print."""
MAX_SIZE = 1 << 48
"""Of one dimension, and of a tensor's bytes."""

_KNOWN_DTYPES = """
    bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex32 complex64
    complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu
"""
_DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in _KNOWN_DTYPES.split() if hasattr(torch, name)}
_DTYPE_NAMES = {dtype: name for name, dtype in _DTYPES.items()}

Header = dict[str, Any]

# Bound at import, at the base class: code that runs later in the same process cannot put itself in between by a
# subclass, an attribute on an instance or a patched method.
_detach = torch.Tensor.detach
_copy = torch.Tensor.copy_
_as_strided = torch.as_strided
_resolve_conj, _resolve_neg = torch.Tensor.resolve_conj, torch.Tensor.resolve_neg
_as_plain = torch.Tensor.as_subclass
_no_overrides = torch._C.DisableTorchFunctionSubclass
_is_tensor = torch.is_tensor


class UnsupportedValue(TypeError):
    """The value holds something that cannot cross: the message names its place and type."""


class BadHeader(ValueError):
    """A header that does not describe a value, or does not fit its buffer."""


def lay_out(value: Any) -> tuple[Header, list[torch.Tensor], int]:
    """(header, tensors in the order of their offsets, bytes of the buffer). Raises UnsupportedValue."""
    found = _Layout()
    header = found.visit(value, "value", 0)
    return header, found.tensors, found.n_bytes


class _Layout:
    """What `lay_out` has seen so far. Not closures that call each other: they are a cycle, which holds the tensors, gigabytes
    of a card, until Python next looks for garbage."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []
        self.n_bytes = self.n_nodes = 0

    def visit(self, item: Any, where: str, depth: int) -> Header:
        self.n_nodes += 1
        if depth > MAX_DEPTH or self.n_nodes > MAX_NODES:
            raise UnsupportedValue(f"{where}: nested deeper than {MAX_DEPTH} or more than {MAX_NODES} parts")
        if _is_tensor(item):
            return self.add_tensor(item, where)
        if item is None or isinstance(item, bool):
            return {"kind": "plain", "value": item}
        if isinstance(item, torch.Size):
            return {"kind": "size", "value": [int(n) for n in item]}
        if isinstance(item, int):
            if int(item).bit_length() > MAX_INTEGER_BITS:
                raise UnsupportedValue(f"{where}: an integer of {int(item).bit_length()} bits")
            return {"kind": "int", "value": hex(int(item))}
        if isinstance(item, float):
            return {"kind": "float", "value": float(item).hex()}
        if isinstance(item, complex):
            return {"kind": "complex", "value": [float(item.real).hex(), float(item.imag).hex()]}
        if isinstance(item, str):
            if len(item) > MAX_TEXT:
                raise UnsupportedValue(f"{where}: a string of {len(item)} characters")
            return {"kind": "plain", "value": str(item)}
        if isinstance(item, torch.dtype):
            return {"kind": "dtype", "value": _dtype_name(item, where)}
        if isinstance(item, torch.device):
            return {"kind": "device", "value": str(item)}
        if isinstance(item, list | tuple):
            kind = "list" if isinstance(item, list) else "tuple"
            return {
                "kind": kind,
                "items": [self.visit(part, f"{where}[{i}]", depth + 1) for i, part in enumerate(item)],
            }
        if isinstance(item, dict):
            pairs = [
                [self.visit(key, f"{where} key", depth + 1), self.visit(part, f"{where}[{key!r:.40}]", depth + 1)]
                for key, part in item.items()
            ]
            return {"kind": "dict", "items": pairs}
        raise UnsupportedValue(f"{where}: a value of type {type(item).__module__}.{type(item).__qualname__}")

    def add_tensor(self, tensor: torch.Tensor, where: str) -> Header:
        with _no_overrides():  # the subclass's __torch_function__ would answer for its own attributes
            if tensor.layout is not torch.strided:
                raise UnsupportedValue(f"{where}: a tensor of layout {tensor.layout}")
            tensor = _detach(_as_plain(tensor, torch.Tensor))
        if tensor.is_meta:
            raise UnsupportedValue(f"{where}: a tensor without data (device meta)")
        name = _dtype_name(tensor.dtype, where)
        offset = -(-self.n_bytes // ALIGNMENT) * ALIGNMENT
        tensor = _resolve_neg(_resolve_conj(tensor))
        header = {
            "kind": "tensor",
            "dtype": name,
            "shape": list(tensor.shape),
            "device": tensor.device.type,
            "offset": offset,
        }
        span = _span(tensor.shape, tensor.stride())
        if span < tensor.numel():
            header["strides"] = list(tensor.stride())
            tensor = _as_strided(tensor, (span,), (1,))
        header["bytes"] = tensor.numel() * tensor.element_size()
        self.n_bytes = offset + header["bytes"]
        self.tensors.append(tensor)
        return header


def _dtype_name(dtype: torch.dtype, where: str) -> str:
    if dtype not in _DTYPE_NAMES:
        raise UnsupportedValue(f"{where}: the dtype {dtype}")
    return _DTYPE_NAMES[dtype]


def write(tensors: list[torch.Tensor], header: Header, buffer: torch.Tensor) -> None:
    """Copy the tensors of `lay_out` to their places in `buffer` (uint8, on any device)."""
    for tensor, node in zip(tensors, _tensor_nodes(header), strict=True):
        if tensor.numel():
            _copy(_view(buffer, node), tensor)


@dataclass(frozen=True)
class Outline:
    """What a header describes. `value`: its tensors without data (device meta). `places`: device types of its tensors."""

    value: Any
    places: frozenset[str]
    n_bytes: int
    """Of the buffer."""
    value_bytes: int
    """Of the value: views that repeat elements count in full."""


def outline(header: Any) -> Outline:
    """Check a header completely and say what it describes; nothing is read. Raises BadHeader."""
    sketch = _Sketch()
    try:
        value = sketch.visit(header, 0)
    except BadHeader:
        raise
    except (TypeError, ValueError, OverflowError, RuntimeError, AttributeError) as error:
        raise BadHeader(f"not a value: {str(error)[:200]}") from error
    return Outline(value, frozenset(sketch.places), sketch.end, sketch.value_bytes)


def read(header: Any, buffer: torch.Tensor, place: Callable[[torch.Tensor, str], torch.Tensor]) -> Any:
    """Rebuild a value. `buffer`: uint8. `place` gets each tensor (a view of the buffer) with the device type that it
    had, and returns the tensor to use: it must copy, or the value stays bound to the buffer. Raises BadHeader, and what
    `place` raises, as it is: a card that is full is no fault of the header's."""
    if outline(header).n_bytes > buffer.numel():
        raise BadHeader("a tensor outside its buffer")
    return _Rebuilding(buffer, place).visit(header, 0)


class _Visit:
    """A walk over a header; a class for the reason that `_Layout` is one. What a tensor becomes is the subclass's."""

    def __init__(self) -> None:
        self.n_nodes = 0

    def tensor(self, node: Header) -> torch.Tensor:
        raise NotImplementedError

    def visit(self, node: Any, depth: int) -> Any:
        self.n_nodes += 1
        if depth > MAX_DEPTH or self.n_nodes > MAX_NODES:
            raise BadHeader("too deep or too many parts")
        if not isinstance(node, dict):
            raise BadHeader("a part is not an object")
        kind, value = node.get("kind"), node.get("value")
        if kind == "tensor":
            return self.tensor(node)
        if kind == "plain" and (value is None or isinstance(value, bool | str)):
            return value
        if kind == "int" and isinstance(value, str) and len(value) <= MAX_INTEGER_BITS // 4 + len("-0x"):
            return int(value, 16)
        if kind == "float" and isinstance(value, str):
            return float.fromhex(value)
        if kind == "complex" and isinstance(value, list) and len(value) == 2:
            return complex(float.fromhex(value[0]), float.fromhex(value[1]))
        if kind == "size" and isinstance(value, list) and all(type(n) is int and 0 <= n < MAX_SIZE for n in value):
            return torch.Size(value)
        if kind == "dtype" and isinstance(value, str) and value in _DTYPES:
            return _DTYPES[value]
        if kind == "device" and isinstance(value, str):
            return torch.device(value)
        items = node.get("items")
        if kind in ("list", "tuple") and isinstance(items, list):
            parts = [self.visit(part, depth + 1) for part in items]
            return parts if kind == "list" else tuple(parts)
        if kind == "dict" and isinstance(items, list) and all(isinstance(p, list) and len(p) == 2 for p in items):
            return {self.visit(key, depth + 1): self.visit(part, depth + 1) for key, part in items}
        raise BadHeader(f"a part of unknown kind {str(kind)[:40]!r}")


class _Sketch(_Visit):
    """Checks everything, and needs no data."""

    def __init__(self) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.end = self.value_bytes = 0

    def tensor(self, node: Header) -> torch.Tensor:
        dtype, shape, offset, n_bytes = (node.get(key) for key in ("dtype", "shape", "offset", "bytes"))
        strides, device = node.get("strides"), node.get("device")
        if not isinstance(dtype, str) or dtype not in _DTYPES or device not in ("cpu", "cuda"):
            raise BadHeader("a tensor of unknown dtype or device")
        if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS:
            raise BadHeader("a tensor without a shape")
        if strides is not None and (not isinstance(strides, list) or len(strides) != len(shape)):
            raise BadHeader("a tensor with bad strides")
        if not all(type(n) is int and 0 <= n < MAX_SIZE for n in (*shape, *(strides or ()), offset, n_bytes)):
            raise BadHeader("a tensor with a bad size")
        item_bytes = _DTYPES[dtype].itemsize
        whole = math.prod(shape) * item_bytes
        if math.prod(n or 1 for n in shape) * item_bytes >= MAX_SIZE:
            raise BadHeader("a tensor with a bad size")
        if n_bytes != (whole if strides is None else _span(shape, strides) * item_bytes):
            raise BadHeader("a tensor whose bytes do not match its shape")
        if offset % ALIGNMENT or offset < self.end:  # pyright: ignore[reportOptionalOperand]
            raise BadHeader("a tensor outside its buffer")
        self.end = offset + n_bytes  # pyright: ignore[reportOptionalOperand]
        self.value_bytes += whole
        self.places.add(device)
        return torch.empty(shape, dtype=_DTYPES[dtype], device="meta")


class _Rebuilding(_Visit):
    """Rebuilds what `outline` has checked."""

    def __init__(self, buffer: torch.Tensor, place: Callable[[torch.Tensor, str], torch.Tensor]) -> None:
        super().__init__()
        self.buffer, self.place = buffer, place

    def tensor(self, node: Header) -> torch.Tensor:
        placed = self.place(_view(self.buffer, node), node["device"])
        if node.get("strides") is None:
            return placed
        return _as_strided(placed, node["shape"], node["strides"]).contiguous()


def _span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Elements from a tensor's first to its last one in memory, both included."""
    if 0 in shape:
        return 0
    span = 1  # not sum(): a candidate may have replaced it in this process
    for n, stride in zip(shape, strides, strict=True):
        span += (n - 1) * stride
    return span


def _view(buffer: torch.Tensor, node: Header) -> torch.Tensor:
    flat = buffer[node["offset"] : node["offset"] + node["bytes"]].view(_DTYPES[node["dtype"]])
    return flat if node.get("strides") is not None else flat.reshape(node["shape"])


def _tensor_nodes(header: Header) -> list[Header]:
    if header["kind"] == "tensor":
        return [header]
    if header["kind"] == "dict":
        return [node for pair in header["items"] for part in pair for node in _tensor_nodes(part)]
    return [node for part in header.get("items", ()) for node in _tensor_nodes(part)]
