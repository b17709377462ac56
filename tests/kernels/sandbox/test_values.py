"""Values cross between processes unchanged, and headers from a liar are refused before a byte is read."""

from __future__ import annotations

import copy
import json
import math
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
import torch

from dice.kernels.sandbox.linux import HUGE_PAGES
from dice.kernels.sandbox.shared_memory import SharedBuffer
from dice.kernels.sandbox.values import (
    ALIGNMENT,
    MAX_INTEGER_BITS,
    BadHeader,
    UnsupportedValue,
    lay_out,
    outline,
    read,
    write,
)


def crossed(value: Any) -> Any:
    """`value` after a trip through JSON and shared memory."""
    header, tensors, size = lay_out(value)
    buffer = SharedBuffer.create(size)
    write(tensors, header, buffer.tensor)
    received = read(json.loads(json.dumps(header)), buffer.tensor, lambda view, device: view.clone())
    buffer.close()
    return received


DTYPES = [
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16),
    *(torch.float32, torch.float64, torch.complex64, torch.complex128, torch.float8_e4m3fn),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (5,), (7, 3), (2, 3, 4, 5)], ids=str)
def test_every_dtype_and_shape_survives_bit_by_bit(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    n_bytes = math.prod(shape) * dtype.itemsize
    source = torch.randint(0, 2 if dtype is torch.bool else 256, (n_bytes,), dtype=torch.uint8)
    tensor = source.view(dtype).reshape(shape)
    received = crossed(tensor)
    assert received.dtype == dtype
    assert received.shape == tensor.shape
    assert torch.equal(received.reshape(-1).view(torch.uint8), source)


def test_layouts_are_rebuilt_contiguous() -> None:
    base = torch.arange(24.0).reshape(4, 6)
    for view in (base.t(), base[::2, 1::2], base[1].expand(3, 6), base.flip(0)):
        received = crossed(view)
        assert torch.equal(received, view)
        assert received.is_contiguous()
    lazy = torch.randn(3, dtype=torch.complex64).conj()
    assert torch.equal(crossed(lazy), lazy.resolve_conj())
    negative = torch.randn(3, dtype=torch.complex64).conj().imag
    assert torch.equal(crossed(negative), negative.resolve_neg())
    assert torch.equal(crossed(torch.nn.Parameter(torch.ones(2))), torch.ones(2))


def test_nesting_and_scalars_survive() -> None:
    Pair = namedtuple("Pair", "left right")
    value = {
        "list": [1, -(2**70), True, None, "text \u2028 ünï"],
        "tuple": (1.5, float("inf"), -0.0, 1 + 2j),
        "named": Pair(torch.ones(2), torch.zeros(3, dtype=torch.int64)),
        3: {"dtype": torch.bfloat16, "device": torch.device("cuda", 1), "size": torch.Size([2, 3])},
        "empty": [[], (), {}],
    }
    received = crossed(value)
    assert received["list"] == value["list"]
    assert type(received["list"][2]) is bool
    assert received["tuple"] == value["tuple"]
    assert math.copysign(1, received["tuple"][2]) == -1
    assert type(received["named"]) is tuple
    assert torch.equal(received["named"][0], torch.ones(2))
    assert received[3] == value[3]
    assert type(received[3]["size"]) is torch.Size
    assert received["empty"] == value["empty"]
    assert math.isnan(crossed(float("nan")))


def test_of_a_view_that_repeats_elements_only_the_storage_crosses() -> None:
    base = torch.arange(24.0).reshape(4, 6)
    views = {
        "one element": (torch.zeros(1).expand(24_000, 32_000), 4),
        "a row": (base[1].expand(1000, 6), 24),
        "every second of a row": (base[1, ::2].expand(1000, 3), 20),
        "windows": (torch.arange(100.0).unfold(0, 50, 1), 400),
        "none": (torch.zeros(1).expand(0, 5), 0),
        "conjugates": (torch.zeros(1, dtype=torch.complex64).conj().expand(3, 5), 120),
        "negatives": (torch.zeros(1, dtype=torch.complex64).conj().imag.expand(3, 5), 60),
        "no repetition": (base.t(), 96),
    }
    for name, (view, size) in views.items():
        header, _, n_bytes = lay_out(view)
        assert n_bytes == size, name
        described = outline(header)
        assert described.n_bytes == size
        assert described.value_bytes == view.numel() * view.element_size()
        assert (described.value.shape, described.value.dtype) == (view.shape, view.dtype)
        assert described.value.is_meta
        if view.numel() < 1 << 20:
            assert torch.equal(crossed(view), view.resolve_conj().resolve_neg()), name
            assert crossed(view).is_contiguous()


@pytest.mark.parametrize(
    "change",
    [
        {"strides": [0]},
        {"strides": [0, -1]},
        {"strides": [0, 1.0]},
        {"strides": [1 << 50, 0]},
        {"strides": [3, 1]},
        {"strides": [1, 1]},
        {"strides": [0, 0], "bytes": 8},
        {"strides": "00"},
        {"strides": [0, 0], "bytes": 4, "shape": [1 << 40, 1 << 40]},
        {"strides": [0, 0], "bytes": 4, "shape": [1 << 47, 0]},
    ],
    ids=str,
)
def test_strides_that_lie_are_refused(change: dict[str, Any]) -> None:
    repeated = {**TENSOR, "strides": [0, 0], "bytes": 4}
    assert read(repeated, torch.zeros(24, dtype=torch.uint8), lambda view, device: view.clone()).shape == (2, 3)
    with pytest.raises(BadHeader):
        outline({**repeated, **change})


def test_integers_are_bounded() -> None:
    largest = (1 << MAX_INTEGER_BITS) - 1
    assert crossed([largest, -largest]) == [largest, -largest]
    float(largest)
    with pytest.raises(UnsupportedValue, match="an integer of 257 bits"):
        lay_out(largest + 1)
    for text in ("0x" + "f" * 5000, "9" * 100):
        with pytest.raises(BadHeader):
            outline({"kind": "int", "value": text})


class Lazy(torch.Tensor):
    """A subclass that answers differently when it is looked at."""

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return torch.full((4,), 7.0)


def test_a_tensor_subclass_is_taken_by_its_storage() -> None:
    assert torch.equal(crossed(torch.zeros(4).as_subclass(Lazy)), torch.zeros(4))


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (object(), "object"),
        ([torch.nn.Linear(1, 1)], "Linear"),
        (torch.eye(3).to_sparse(), "sparse"),
        (torch.empty(2, device="meta"), "meta"),
        (lambda: 0, "function"),
        ({1, 2}, "set"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_cross_is_named(value: Any, what: str) -> None:
    with pytest.raises(UnsupportedValue, match=what):
        lay_out({"key": value})


def test_endless_nesting_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(UnsupportedValue, match="nested"):
        lay_out(value)


TENSOR = {"kind": "tensor", "dtype": "float32", "shape": [2, 3], "device": "cpu", "offset": 0, "bytes": 24}


@pytest.mark.parametrize(
    "change",
    [
        {"bytes": 23},
        {"bytes": 48, "shape": [4, 3]},
        {"bytes": -24},
        {"offset": -ALIGNMENT},
        {"offset": 8},
        {"offset": 1 << 40},
        {"shape": [-2, -3]},
        {"shape": [2.0, 3]},
        {"shape": [True, 6]},
        {"shape": [6] * 100},
        {"shape": "23"},
        {"shape": [1 << 62, 4, 0]},
        {"dtype": "float31"},
        {"dtype": "qint8"},
        {"dtype": ["float32"]},
        {"device": "meta"},
        {"device": None},
        {"kind": "module"},
        {"kind": ["tensor"]},
    ],
    ids=str,
)
def test_tensor_headers_that_lie_are_refused(change: dict[str, Any]) -> None:
    buffer = torch.zeros(24, dtype=torch.uint8)
    assert read(TENSOR, buffer, lambda view, device: view.clone()).shape == (2, 3)
    with pytest.raises(BadHeader):
        read({**TENSOR, **change}, buffer, lambda view, device: view.clone())


@pytest.mark.parametrize(
    "header",
    [
        None,
        [],
        "tensor",
        {},
        {"kind": "list"},
        {"kind": "list", "items": {}},
        {"kind": "dict", "items": [[{"kind": "plain", "value": 1}]]},
        {"kind": "dict", "items": [[{"kind": "list", "items": []}, {"kind": "plain", "value": None}]]},
        {"kind": "plain", "value": 3},
        {"kind": "plain", "value": {"a": 1}},
        {"kind": "int", "value": "__import__('os')"},
        {"kind": "float", "value": "one"},
        {"kind": "float", "value": 1.0},
        {"kind": "complex", "value": ["0x1p0"]},
        {"kind": "size", "value": [-1]},
        {"kind": "dtype", "value": "load"},
        {"kind": "device", "value": "nonsense:x"},
        {"kind": "tuple", "items": [TENSOR, TENSOR]},
    ],
    ids=str,
)
def test_headers_that_describe_nothing_are_refused(header: Any) -> None:
    with pytest.raises(BadHeader):
        read(header, torch.zeros(1024, dtype=torch.uint8), lambda view, device: view.clone())


def test_a_deep_or_broad_header_is_refused() -> None:
    deep: dict[str, Any] = {"kind": "plain", "value": None}
    for _ in range(40):
        deep = {"kind": "list", "items": [copy.copy(deep)]}
    broad = {"kind": "list", "items": [{"kind": "plain", "value": None}] * 30_000}
    for header in (deep, broad):
        with pytest.raises(BadHeader):
            read(header, torch.empty(0, dtype=torch.uint8), lambda view, device: view)


def test_a_shared_buffer_cannot_be_resized() -> None:
    buffer = SharedBuffer.create(4096)
    for size in (0, 8192):
        with pytest.raises(OSError, match="not permitted"):
            os.ftruncate(buffer.fd, size)
    other = SharedBuffer(os.dup(buffer.fd), 4096)
    other.tensor.fill_(9)
    assert int(buffer.tensor.sum()) == 9 * 4096
    other.close()
    buffer.close()
    buffer.close()


def test_a_view_outlives_its_shared_buffer() -> None:
    buffer = SharedBuffer.create(4096)
    view = buffer.tensor[:16].fill_(7)
    buffer.close()
    assert int(view.sum()) == 7 * 16


def test_what_place_raises_is_not_the_headers_fault() -> None:
    header, tensors, size = lay_out(torch.ones(3))
    buffer = SharedBuffer.create(size)
    write(tensors, header, buffer.tensor)

    def full(view: torch.Tensor, device: str) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(torch.OutOfMemoryError):
        read(header, buffer.tensor, full)
    header["shape"] = [4]
    with pytest.raises(BadHeader):
        read(header, buffer.tensor, full)
    buffer.close()


def test_a_large_buffer_is_there_before_it_is_used() -> None:
    """And a small one is not: its memory is taken as it is touched."""
    for size, taken in ((300 << 20, 300 << 20), (100 << 20, 0)):
        buffer = SharedBuffer.create(size)
        assert os.fstat(buffer.fd).st_blocks * 512 == taken
        assert int(buffer.tensor[:: 1 << 20].count_nonzero()) == 0
        buffer.close()


@pytest.mark.parametrize("asked", [True, False])
def test_pytorch_takes_huge_pages_when_asked(asked: bool) -> None:
    mode = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not mode.exists() or "[madvise]" not in mode.read_text():
        pytest.skip("this machine gives huge pages to none or to all")
    program = "import torch; x = torch.ones(1 << 26); print(open('/proc/self/smaps_rollup').read())"
    environment = {name: value for name, value in os.environ.items() if name != HUGE_PAGES}
    environment |= {HUGE_PAGES: "1"} if asked else {}
    told = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True)
    huge_kib = int(told.stdout.split("AnonHugePages:")[1].split()[0])
    assert (huge_kib > 100_000) is asked
