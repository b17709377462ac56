"""Numbers that a candidate counts up from call to call, wherever they are, and what comes of setting them ahead.

A candidate that stops working after five hundred calls has to know how many there were. So something that outlives a call
changes with each: an attribute, a closure's variable, the length of a list, a static variable of C++, an element of a tensor.
What grows by the same amount in one call and in many is such a number. Set ahead, it shows the candidate as it will be.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import gc
import itertools
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

from dice.kernels.candidate.addresses import OF_PROGRAMS, are_addresses
from dice.kernels.candidate.loaded_objects import LOAD, THREAD_LOCAL, WRITABLE, Loaded, for_each_object

_MOST_OBJECTS = 20_000
_MOST_LENGTH = 1 << 20
"""Items by which a container or an iterator is set ahead at most."""
_MOST_WORD = 1 << 30
"""No word of memory is set to more."""
_MOST_STEP = 1 << 24
"""By which a word of memory may change in one call."""
_MOST_BYTES = 1 << 22
"""Of memory that is looked at in one piece."""
_MOST_OF_A_REGION = 64
"""Numbers that are set ahead in one piece of memory."""
_MOST_FIXED = 64
"""Parts of a tuple that are compared."""
_LEAST_NUMBER = 1e-3
"""A smaller float is an integer that is read in the wrong type."""
_ROUND = 1 / 8
"""A float changes by multiples of it; by less it is half of a longer number."""
_NUMBERS = (torch.int16, torch.int32, torch.int64, torch.float32, torch.float64)
_FORMATS: dict[str, tuple[torch.dtype, ...]] = {
    "h": (torch.int16,),
    "i": (torch.int32,),
    "l": (torch.int64,),
    "q": (torch.int64,),
    "f": (torch.float32,),
    "d": (torch.float64,),
}
_FORMATS |= {name.upper(): kinds for name, kinds in _FORMATS.items() if not kinds[0].is_floating_point}
_WAITING = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_LIBRARIES = (types.ModuleType, type(torch.float32), torch.device, torch.Generator, str, bytes)


@dataclass
class Number:
    """One number that outlives a call. `ahead`: set it ahead by some of the steps that a call makes, given the step."""

    value: float
    ahead: Callable[[int, float], None]


@dataclass
class Region:
    """Memory of numbers of one type."""

    live: Callable[[], torch.Tensor]
    copy: torch.Tensor
    kinds: tuple[torch.dtype, ...]
    """What its words may be."""


@dataclass
class Look:
    """What was found at one time, by keys that are the same in each look."""

    numbers: dict[Any, Number]
    regions: dict[Any, Region]
    values: dict[Any, Any] = field(default_factory=dict)
    """Numbers and text that objects hold, and tuples of them."""


def look_at(roots: list[Any], own_modules: set[str], spared: set[int], segments: list[tuple[int, int]]) -> Look:
    """Numbers, lengths and iterators that can be reached from `roots`, tensors, and memory.

    own_modules: names of the modules whose classes and functions are looked through. spared: addresses of tensors that are
    left alone. segments: addresses and sizes of memory.
    """
    look = Look({}, {})
    waiting, seen = deque(roots), {id(vars(builtins))}
    while waiting and len(seen) < _MOST_OBJECTS:
        item = waiting.popleft()
        if id(item) in seen or isinstance(item, _LIBRARIES):
            continue
        seen.add(id(item))
        if isinstance(item, torch.Tensor):
            address = item.untyped_storage().data_ptr() if item.layout is torch.strided else None
            if address is not None and address not in spared and address not in look.regions:
                look.regions |= _of_tensor(item)
            continue
        with contextlib.suppress(Exception):  # what its own properties raise is no answer of the candidate's
            look.regions |= _of_buffer(item)
            if not isinstance(item, type) or item.__module__ in own_modules:
                held = _held(item)
                look.numbers |= {(id(item), key): number for key, number in _own(item, held)}
                look.values |= {(id(item), key): value for key, value in held.items() if _is_fixed(value)}
        with contextlib.suppress(Exception):
            waiting.extend(_parts(item, own_modules))
    for address, size in segments:
        size = min(size, _MOST_BYTES) // 8 * 8 or 4
        flat = torch.frombuffer((ctypes.c_uint8 * size).from_address(address), dtype=torch.int32)
        kinds = (torch.int32, torch.float32) + ((torch.float64,) if size > 4 else ())
        look.regions[address] = Region(partial(_itself, flat), flat.clone(), kinds)
    return look


def advancing(first: Look, second: Look, third: Look, calls: int) -> list[tuple[Number, float]]:
    """The numbers that one call has moved by a step and `calls` more calls by as many steps, with the step."""
    found: list[tuple[Number, float]] = []
    for key in first.numbers.keys() & second.numbers.keys() & third.numbers.keys():
        values = [look.numbers[key].value for look in (first, second, third)]
        step = values[1] - values[0]
        if step and values[2] - values[1] == calls * step:
            found.append((third.numbers[key], step))
    for key in first.regions.keys() & second.regions.keys() & third.regions.keys():
        region = third.regions[key]
        copies = [look.regions[key].copy for look in (first, second, third)]
        if len({copy.numel() for copy in copies}) == 1:
            found += _advancing(region, copies, calls)
    return found


def moves(first: Look, second: Look, third: Look) -> bool:
    """Whether a value, or a byte of memory that is no part of an address, was another one at each look, by whatever steps."""
    for key in first.values.keys() & second.values.keys() & third.values.keys():
        if first.values[key] != second.values[key] != third.values[key]:
            return True
    for key in first.regions.keys() & second.regions.keys() & third.regions.keys():
        copies = [look.regions[key].copy for look in (first, second, third)]
        if len({copy.nbytes for copy in copies}) == 1 and _moves(copies, len(third.regions[key].kinds) > 1):
            return True
    return False


def set_ahead(numbers: Iterable[tuple[Number, float]], near: int, before: int, far: int) -> None:
    """Set numbers ahead, each with its step: to `before` calls below `near`, those that come there; by `far` calls where
    `near` is 0. One that refuses stays where it is."""
    for number, step in numbers:
        with contextlib.suppress(Exception):
            steps = int((near - number.value) // step) - before if near else far
            if steps > 0:
                number.ahead(steps, step)


def _advancing(region: Region, copies: list[torch.Tensor], calls: int) -> Iterator[tuple[Number, float]]:
    # Bytes of addresses, and of numbers in the first type that fits.
    taken = torch.zeros(copies[0].numel() * copies[0].element_size(), dtype=torch.bool)
    if torch.float64 in region.kinds and len(region.kinds) > 1:
        taken |= are_addresses(copies[2].view(torch.int64), OF_PROGRAMS).repeat_interleave(8)
    for kind in region.kinds:
        before, after, at_last = (copy.view(kind).double() for copy in copies)
        step = after - before
        chosen = (
            (step != 0) & (step.abs() <= _MOST_STEP) & (at_last - after == calls * step) & (at_last.abs() < _MOST_WORD)
        )
        if kind.is_floating_point:
            chosen &= at_last.abs() > _LEAST_NUMBER
            chosen &= step % _ROUND == 0
        chosen &= ~taken.reshape(len(chosen), -1).any(1)
        taken |= chosen.repeat_interleave(taken.numel() // max(1, len(chosen)))
        for index in chosen.nonzero().flatten().tolist()[:_MOST_OF_A_REGION]:
            yield (
                Number(float(at_last[index]), partial(_put_ahead, region.live, kind, index, float(at_last[index]))),
                float(step[index]),
            )


def _moves(copies: list[torch.Tensor], of_unknown_type: bool) -> bool:
    first, second, third = (copy.view(torch.uint8) for copy in copies)
    moved = (first != second) & (second != third)
    if of_unknown_type and len(moved) % 8 == 0:
        for copy in copies:
            moved &= ~are_addresses(copy.view(torch.int64), OF_PROGRAMS).repeat_interleave(8)
    return bool(moved.any())


def _put_ahead(
    live: Callable[[], torch.Tensor], kind: torch.dtype, index: int, value: float, steps: int, step: float
) -> None:
    memory = live().view(kind)
    if index >= memory.numel():
        return
    if abs(value + steps * step) < (1 << 15 if memory.dtype is torch.int16 else _MOST_WORD):
        memory[index] = value + steps * step


def _parts(item: Any, own_modules: set[str]) -> Iterator[Any]:
    """What belongs to an object of the candidate's."""
    if isinstance(item, dict):
        yield from [*item.values()]
    elif isinstance(item, list | tuple | set | frozenset | deque):
        yield from [*item]
    elif isinstance(item, types.FunctionType):
        if item.__module__ in own_modules:
            yield from (cell.cell_contents for cell in item.__closure__ or () if _filled(cell))
            yield from [
                *(item.__closure__ or ()),
                item.__dict__,
                item.__defaults__,
                item.__kwdefaults__,
                item.__globals__,
            ]
    elif isinstance(item, types.MethodType):
        yield from (item.__self__, item.__func__)
    elif isinstance(item, _WAITING) or _is_builtin_iterator(item):
        yield from gc.get_referents(item)  # what it goes through, which no attribute leads to
    elif isinstance(item, staticmethod | classmethod | property):
        yield from (getattr(item, name, None) for name in ("__func__", "fget"))
    elif isinstance(item, type):
        if item.__module__ in own_modules:
            yield from [*vars(item).values()]
    elif isinstance(item, torch.nn.Module) or type(item).__module__ in {*own_modules, "types", "functools"}:
        yield from [*getattr(item, "__dict__", {}).values(), type(item), getattr(item, "func", None)]
        yield from (getattr(item, name, None) for name in _slots(type(item)))


def _held(item: Any) -> dict[Any, Any]:
    """What an object holds itself, by where."""
    if isinstance(item, dict):
        return dict(item)
    if isinstance(item, list | deque):
        return dict(enumerate(item))
    if isinstance(item, set):
        return {0: tuple(item)}  # of the same items in the same order, if nobody has touched it
    if isinstance(item, types.CellType):
        return {0: item.cell_contents} if _filled(item) else {}
    if isinstance(item, _WAITING):
        return _locals_of(item)
    held = {name: value for name, value in getattr(item, "__dict__", {}).items() if isinstance(name, str)}
    return held | {name: getattr(item, name, None) for name in _slots(type(item))}


def _is_fixed(value: Any) -> bool:
    """Whether it is made of numbers and text alone, of no class of the candidate's: it cannot change itself, and to compare
    it runs no code."""
    if type(value) is tuple:
        return len(value) <= _MOST_FIXED and all(_is_fixed(each) for each in value)
    return type(value) in (bool, int, float, complex, str, bytes)


def _own(item: Any, held: dict[Any, Any]) -> Iterator[tuple[Any, Number]]:
    """Numbers that an object holds itself. `held`: all that it holds."""
    if isinstance(item, dict | list | deque):
        yield from _slots_of(held, item.__setitem__)
    elif isinstance(item, types.CellType):
        yield from _slots_of(held, lambda _, value: setattr(item, "cell_contents", value))
    elif isinstance(item, _WAITING):
        yield from _slots_of(held, partial(_put_local, item))
    elif isinstance(item, itertools.count):
        begun = _next_of(item)[0]
        yield 0, Number(begun, lambda steps, step: _count_on(item, int(begun + steps * step)))
    elif _is_builtin_iterator(item) and hasattr(item, "__length_hint__"):
        left = item.__length_hint__()
        yield 0, Number(left, lambda steps, step: _consume(item, item.__length_hint__() - int(left + steps * step)))
    else:
        yield from _slots_of(held, lambda name, value: setattr(item, name, value))
    if isinstance(item, list | deque | set | dict | bytearray):
        length = len(item)
        yield "length", Number(length, lambda steps, step: _lengthen(item, int(length + steps * step) - len(item)))


def _slots_of(held: dict[Any, Any], put: Callable[[Any, Any], Any]) -> Iterator[tuple[Any, Number]]:
    for key, value in held.items():
        if _is_number(value):
            yield (
                ("slot", str(key)),
                Number(value, lambda steps, step, k=key, v=value: put(k, type(v)(v + steps * step))),
            )
        elif isinstance(value, str | bytes) and value:
            yield ("text", str(key)), Number(len(value), partial(_lengthen_text, put, key, value))


def _lengthen_text(put: Callable[[Any, Any], Any], key: Any, value: Any, steps: int, step: float) -> None:
    put(key, value + value[-1:] * min(int(steps * step), _MOST_LENGTH))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


def _slots(kind: type) -> list[str]:
    return [name for base in kind.__mro__ for name in base.__dict__.get("__slots__", ()) if isinstance(name, str)]


def _is_builtin_iterator(item: Any) -> bool:
    """Whether it is an iterator without code of the candidate's."""
    return type(item).__module__ in ("builtins", "itertools") and hasattr(item, "__next__")


def _frame_of(waiting: Any) -> types.FrameType | None:
    """The frame of a generator or a coroutine that has begun, or may begin, and does not run."""
    frames = (getattr(waiting, name, None) for name in ("gi_frame", "cr_frame", "ag_frame"))
    runs = any(getattr(waiting, name, False) for name in ("gi_running", "cr_running", "ag_running"))
    return None if runs else next((frame for frame in frames if frame is not None), None)


def _locals_of(waiting: Any) -> dict[str, Any]:
    frame = _frame_of(waiting)
    return dict(frame.f_locals) if frame is not None else {}


def _put_local(waiting: Any, name: str, value: Any) -> None:
    """Set a variable of a generator that waits. To go on with it would run the candidate's code, which may wait for what its
    caller sends."""
    frame = _frame_of(waiting)
    if frame is not None:
        frame.f_locals[name] = value
        if sys.version_info < (3, 13):  # before, what `f_locals` gives is a copy
            ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


def _next_of(count: itertools.count[Any]) -> tuple[Any, Any]:
    """What a count gives next, and its step."""
    start, *step = count.__reduce__()[1]
    return start, (step[0] if step else 1)


def _count_on(count: itertools.count[Any], target: int) -> None:
    """Read a count on, however far it has come since it was looked at."""
    now, step = _next_of(count)
    _consume(count, int((target - now) // step))


def _consume(iterator: Any, steps: int) -> None:
    deque(itertools.islice(iterator, min(steps, _MOST_LENGTH)), maxlen=0)


def _lengthen(item: Any, by: int) -> None:
    by = min(by, _MOST_LENGTH)
    if by <= 0 or not item:
        return
    if isinstance(item, dict):
        value = next(iter(item.values()))
        item.update({("ahead", index): value for index in range(by)})
    elif isinstance(item, set):
        item.update(range(1 << 40, (1 << 40) + by))
    else:
        item.extend(itertools.repeat(item[-1], by))


def _of_tensor(tensor: torch.Tensor) -> dict[Any, Region]:
    storage = tensor.untyped_storage()
    if tensor.dtype not in _NUMBERS or not 0 < storage.nbytes() <= _MOST_BYTES:
        return {}
    flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(storage)
    return {storage.data_ptr(): Region(partial(_itself, flat), flat.cpu().clone(), (tensor.dtype,))}


def _itself(flat: torch.Tensor) -> torch.Tensor:
    return flat


def _of_buffer(item: Any) -> dict[Any, Region]:
    """Memory that an object of Python's lets others write: a bytearray, an array, one of NumPy's, a variable of C's. It is
    opened anew each time: while a tensor holds it, it cannot grow."""
    try:
        view = memoryview(item)
    except (TypeError, ValueError, BufferError):
        return {}
    with view:
        kinds = _FORMATS.get(view.format.lstrip("@=<"), (torch.int32, torch.float32, torch.float64))
        if view.readonly or not view.c_contiguous or not 4 <= view.nbytes <= _MOST_BYTES:
            return {}
        kinds = tuple(kind for kind in kinds if view.nbytes % kind.itemsize == 0)
    return {("buffer", id(item)): Region(partial(_words_of, item), _words_of(item).clone(), kinds)}


def _words_of(item: Any) -> torch.Tensor:
    view = memoryview(item).cast("B")
    return torch.frombuffer(view[: view.nbytes // 4 * 4], dtype=torch.int32)


# ---- memory of shared objects ----


def static_memory(paths: set[str]) -> list[tuple[int, int]]:
    """Address and size of the variables of shared objects that were loaded from `paths`, those of this thread included."""
    found: list[tuple[int, int]] = []

    def take(loaded: Loaded) -> None:
        if loaded.path not in paths:
            return
        for segment in loaded.within(LOAD):
            if segment.flags & WRITABLE:
                found.append((loaded.base + segment.virtual, segment.in_memory))
        if loaded.thread_local:
            found.extend((loaded.thread_local, segment.in_memory) for segment in loaded.within(THREAD_LOCAL))

    for_each_object(take)
    return [(address + -address % 8, size - -address % 8) for address, size in found if size - -address % 8 >= 4]
