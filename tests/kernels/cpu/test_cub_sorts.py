"""cub's radix sorts on the CPU: the order of CUB's documentation, of whole keys and of some of their bits."""

from __future__ import annotations

import itertools
import struct
from types import ModuleType

import pytest
import torch
from cpu_fixtures import Load

INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
FLOATS = (torch.half, torch.bfloat16, torch.float32, torch.float64)
PLACES = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@pytest.fixture(scope="module")
def sorts(load: Load) -> ModuleType:
    return load("cub_sorts")


def bits(keys: torch.Tensor) -> torch.Tensor:
    """The bits of keys, which compare where keys that are NaN do not."""
    return keys.view(PLACES[keys.element_size()])


def check(sorts: ModuleType, keys: torch.Tensor, is_unsigned: bool, places: list[int], *how: int) -> None:
    expected = bits(keys[places])
    alone, paired, found = sorts.sorted(keys, is_unsigned, *how)
    assert found.tolist() == places
    assert torch.equal(bits(alone), expected)
    assert torch.equal(bits(paired), expected)


def stable(keys: list[float], descending: bool) -> list[int]:
    """Places in the order of their keys; equal keys stay in the order in which they came."""
    return sorted(range(len(keys)), key=lambda place: -keys[place] if descending else keys[place])


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    ("dtype", "is_unsigned"),
    [(torch.bool, True), *((dtype, False) for dtype in INTEGERS), *((dtype, True) for dtype in INTEGERS[2:])],
)
def test_integers(sorts: ModuleType, dtype: torch.dtype, is_unsigned: bool, descending: bool) -> None:
    width = 8 * dtype.itemsize
    edges = [0, 1, -1, 2, -2, 127, -128, 1 << (width - 2), -(1 << (width - 1)), (1 << (width - 1)) - 1]
    keys = torch.tensor(edges * 2).to(dtype)
    values = [value % (1 << width) if is_unsigned else value for value in keys.tolist()]
    check(sorts, keys, is_unsigned, stable(values, descending), descending, 0, -1)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_with_zeros_that_are_equal_and_nans_beyond_the_infinity_of_their_sign(
    sorts: ModuleType, dtype: torch.dtype, descending: bool
) -> None:
    """CUB keeps the sign of each zero and the order in which zeros came; std::sort of NaN keeps nothing."""
    infinity = float("inf")
    given = [0.0, -1.0, -0.0, 2.0, infinity, 0.0, -infinity, 1e-4, -1e-4, -0.0, -1.0]
    keys = torch.cat([torch.tensor(given), torch.tensor([float("nan")] * 3)]).to(dtype)
    limits = torch.iinfo(bits(keys).dtype)
    bits(keys)[[11, 13]] &= limits.max  # the sign of a NaN is its highest bit
    bits(keys)[12] |= limits.min
    order = [*given, 2e9, -2e9, 2e9]  # in place of NaN
    order[4], order[6] = 1e9, -1e9  # and of infinity
    check(sorts, keys, False, stable(order, descending), descending, 0, -1)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("begin", "end"), [(0, 4), (4, 9), (3, 3), (24, 32), (31, 32), (0, 32), (0, 31)])
@pytest.mark.parametrize("kind", ["unsigned", "signed", "float"])
def test_some_bits(sorts: ModuleType, kind: str, begin: int, end: int, descending: bool) -> None:
    """Of a signed key the highest bit stands for "not negative"; of a negative float every bit is turned round."""
    words = [
        0,
        1,
        0x0000_0123,
        0x7F00_00F0,
        0x8000_0001,
        0x8000_0010,
        0xFFFF_FFFF,
        0xBF80_0000,
        0x3F80_0000,
        0x0000_0130,
    ]
    words += [word ^ 0x0101_0111 for word in words]
    ordered = {
        "unsigned": lambda word: word,
        "signed": lambda word: struct.unpack("<i", struct.pack("<I", word))[0] + (1 << 31),
        "float": lambda word: 0xFFFF_FFFF - word if word >> 31 else word + (1 << 31),
    }[kind]
    fields = [ordered(word) >> begin & (1 << end - begin) - 1 for word in words]
    keys = torch.tensor(words).to(torch.int32)
    keys = keys.view(torch.float32) if kind == "float" else keys
    check(sorts, keys, kind == "unsigned", stable(fields, descending), descending, begin, end)


@pytest.mark.parametrize("count", [0, 1])
def test_few_keys(sorts: ModuleType, count: int) -> None:
    for dtype, descending in itertools.product((torch.int32, torch.float32), (False, True)):
        check(sorts, torch.ones(count, dtype=dtype), False, list(range(count)), descending, 0, -1)


@pytest.fixture(scope="module")
def block_sorts(load: Load) -> ModuleType:
    return load("cub_block_sorts")


@pytest.mark.parametrize("striped", [False, True])
@pytest.mark.parametrize("descending", [False, True])
def test_each_block_sorts_its_own_keys(block_sorts: ModuleType, descending: bool, striped: bool) -> None:
    keys = torch.randint(-20, 20, (2, 192), generator=torch.Generator().manual_seed(3)).float()
    expected, places = keys.sort(dim=1, descending=descending, stable=True)
    alone, paired, found = block_sorts.in_blocks(keys, descending, striped)
    assert torch.equal(alone, expected)
    assert torch.equal(paired, expected)
    assert torch.equal(found, (places + torch.tensor([[0], [192]])).int())


@pytest.mark.parametrize("with_values", [False, True])
@pytest.mark.parametrize("descending", [False, True])
def test_two_buffers_in_turn(block_sorts: ModuleType, descending: bool, with_values: bool) -> None:
    keys = torch.randint(-20, 20, (500,), generator=torch.Generator().manual_seed(4)).float()
    expected, places = keys.sort(descending=descending, stable=True)
    found, of_values = block_sorts.in_turn(keys, descending, with_values)
    assert torch.equal(found, expected)
    assert torch.equal(of_values, places.int() if with_values else torch.arange(500, dtype=torch.int))
