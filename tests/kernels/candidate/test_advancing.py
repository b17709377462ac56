"""Numbers that a program counts up from call to call, and what it is after they were set ahead."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
import types
from array import array
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from dice.kernels.candidate.advancing import Look, Number, advancing, look_at, moves, static_memory
from dice.kernels.candidate.advancing import set_ahead as all_ahead

CALLS = 60


def found(call: Callable[[], Any], roots: list[Any], segments: Callable[[], list[tuple[int, int]]] = list) -> Any:
    """What advances in calls of `call`, with its step."""
    looks: list[Look] = []
    for calls in (3, 1, CALLS):
        for _ in range(calls):
            call()
        looks.append(look_at(roots, {__name__}, set(), segments()))
    return advancing(looks[0], looks[1], looks[2], CALLS)


def moved(call: Callable[[], Any], roots: list[Any], segments: Callable[[], list[tuple[int, int]]] = list) -> bool:
    looks: list[Look] = []
    for calls in (3, 1, CALLS + 1):
        for _ in range(calls):
            call()
        looks.append(look_at(roots, {__name__}, set(), segments()))
    return moves(looks[0], looks[1], looks[2])


def set_ahead(numbers: list[tuple[Number, float]], steps: int) -> None:
    for number, step in numbers:
        number.ahead(steps, step)


class Counter:
    """An object that counts its calls in some way."""

    __slots__ = ("count", "items", "left", "long", "page", "room", "text", "tickets", "ways", "words")

    def __init__(self) -> None:
        self.count, self.items, self.text = 0.0, [0], "x"
        self.tickets, self.ways, self.left = itertools.count(), ways(), iter(range(500))
        self.room = torch.zeros(3, dtype=torch.int32)
        self.long = ctypes.c_long(9)
        self.page, self.words = bytearray(16), memoryview(array("h", [4, 4, 0, 4]))


def ways() -> Iterator[str]:
    for _ in range(600):
        yield "right"
    while True:
        yield "wrong"


def by_number(own: Counter) -> bool:
    own.count = own.count + 0.5
    return own.count > 400


def by_length(own: Counter) -> bool:
    own.items.append(7)
    return len(own.items) > 900


def by_text(own: Counter) -> bool:
    own.text += "ab"
    return len(own.text) > 1000


def by_ticket(own: Counter) -> bool:
    return next(own.tickets) > 700


def by_generator(own: Counter) -> bool:
    return next(own.ways) == "wrong"


def by_an_end(own: Counter) -> bool:
    return next(own.left, None) is None


def by_an_element(own: Counter) -> bool:
    own.room[1] -= 2
    return int(own.room[1]) < -1500


def by_bytes(own: Counter) -> bool:
    count = int.from_bytes(own.page[8:], "little") + 1
    own.page[8:] = count.to_bytes(8, "little")
    return count > 800


def by_a_variable_of_c(own: Counter) -> bool:
    own.long.value = own.long.value - 1
    return own.long.value < -800


def by_a_view_of_an_array(own: Counter) -> bool:
    own.words[2] = own.words[2] + 1
    return own.words[2] > 800


@pytest.mark.parametrize(
    "way",
    [
        by_number,
        by_length,
        by_text,
        by_ticket,
        by_generator,
        by_an_end,
        by_an_element,
        by_bytes,
        by_a_variable_of_c,
        by_a_view_of_an_array,
    ],
    ids=lambda way: way.__name__,
)
def test_what_counts_in_any_way_is_found_and_set_ahead(way: Callable[[Counter], bool]) -> None:
    own = Counter()
    numbers = found(lambda: way(own), [own])
    assert numbers
    assert not way(own)
    set_ahead(numbers, 2000)
    assert way(own)


@pytest.mark.parametrize(
    ("counted", "call", "at"),
    [
        (itertools.count(), lambda each: next(each), lambda each: each.__reduce__()[1][0]),
        (itertools.count(10, 2), lambda each: (next(each), next(each)), lambda each: each.__reduce__()[1][0]),
        (iter([*range(5000)]), lambda each: next(each), lambda each: each.__length_hint__()),
        ([0], lambda each: each.append(1), len),
    ],
)
def test_what_is_only_read_on_comes_to_the_same_number_however_often_it_is_set_ahead(
    counted: Any, call: Callable[[Any], Any], at: Callable[[Any], int]
) -> None:
    numbers = found(lambda: call(counted), [[counted]])
    (number, step), *_ = numbers
    begun = at(counted)
    for steps in (100, 400):
        set_ahead(numbers, steps)
        assert at(counted) == number.value + steps * step == begun + steps * step
        call(counted)


def test_a_buffer_can_grow_between_two_looks() -> None:
    own = {"page": bytearray(64), "fixed": memoryview(b"read only")}
    found(lambda: own["page"].extend(bytes(512)), [own])
    assert len(own["page"]) == 64 + 512 * (3 + 1 + CALLS)


def test_a_variable_of_a_closure_counts_too() -> None:
    def counted() -> Callable[[], int]:
        calls = 0

        def call() -> int:
            nonlocal calls
            calls += 1
            return calls

        return call

    call = counted()
    set_ahead(found(call, [{"call": call}]), 1000)
    assert call() == 3 + 1 + CALLS + 1000 + 1


def test_a_ring_and_what_stays_or_jumps_is_left_alone() -> None:
    own: dict[str, Any] = {"slot": 0, "size": 64, "jumps": 0.0}

    def call() -> None:
        own["slot"] = (own["slot"] + 1) % 4
        own["jumps"] = float(torch.rand(1))

    assert found(call, [own]) == []


@pytest.mark.parametrize(
    ("kept", "call", "does_move"),
    [
        ({"salt": 5}, lambda own: own.update(salt=pow(own["salt"], 3, 1000003)), True),
        ({"state": (1, "a")}, lambda own: own.update(state=(own["state"][0] * 3 % 7, "a")), True),
        ({"text": "abc"}, lambda own: own.update(text=own["text"][1:] + own["text"][0]), True),
        ({"sign": True, "other": [True]}, lambda own: own["other"].insert(0, not own["other"].pop()), True),
        ({"row": deque([1, 2, 3])}, lambda own: own["row"].rotate(), True),
        ({"row": {3}}, lambda own: own["row"].add(own["row"].pop() * 3 % 7), True),
        ({"room": torch.tensor([3])}, lambda own: own["room"].mul_(3).remainder_(7), True),
        ({"page": bytearray(b"abcdefgh")}, lambda own: own["page"].reverse(), True),
        ({"page": bytearray(b"abcdefgh")}, lambda own: own["page"].append(own["page"].pop(0)), True),
        ({"salt": 5, "made": 0}, lambda own: own.update(made=1), False),
        ({"where": torch.tensor([0x7FFF << 32])}, lambda own: None, False),
    ],
)
def test_what_moves_in_any_way(kept: dict[str, Any], call: Callable[[Any], Any], does_move: bool) -> None:
    assert moved(lambda: call(kept), [kept]) == does_move


def test_addresses_do_not_move() -> None:
    page = (ctypes.c_long * 4)(7, 0x7F00_0000_0000, 0x5600_0000_0000, 0)

    def call() -> None:
        page[1], page[2] = page[2] + 64, page[1] + 64

    segment = [(ctypes.addressof(page), ctypes.sizeof(page))]
    assert not moved(call, [], lambda: segment)
    assert moved(lambda: page.__setitem__(3, page[3] * 5 + 1), [], lambda: segment)


@pytest.mark.parametrize(("module", "looked_through"), [(__name__, True), ("another", False)])
def test_objects_of_other_modules_are_not_looked_through(module: str, looked_through: bool) -> None:
    """Their own numbers count, not those of what they hold."""

    class Other:
        def __init__(self) -> None:
            self.calls, self.held = 0, [0]

    Other.__module__ = module
    other = Other()

    def call() -> None:
        other.calls += 1
        other.held[0] += 1

    set_ahead(found(call, [{"held": [other]}]), 1000)
    calls = 3 + 1 + CALLS
    assert (other.calls, other.held) == (calls + 1000, [calls + 1000 * looked_through])


def test_variables_of_a_shared_object_are_found_but_for_addresses(tmp_path: Path) -> None:
    source = """
        static double age = 300;
        static int calls = 7, ring = 0, answer = 42;
        static char room[4096], *next = room;
        static __thread int left = 1000;
        int call(void) {
            age += 1; calls += 3; ring = (ring + 1) % 8; left -= 1; next += 16;
            return age > 1900 && calls > 2000 && left < 0 && next < room + 4096 && answer == 42;
        }
    """
    (tmp_path / "counts.c").write_text(source)
    path = str(tmp_path / "counts.so")
    subprocess.run(["gcc", "-shared", "-fPIC", "-O0", "-o", path, str(tmp_path / "counts.c")], check=True)
    library = ctypes.CDLL(path)
    numbers = found(library.call, [], lambda: static_memory({path}))
    assert sorted(step for _, step in numbers) == [-1.0, 1.0, 3.0]
    set_ahead(numbers, 5000)
    assert library.call() == 1


def sent_from_a_supply() -> Iterator[str]:
    yield ""
    for _ in range(600):
        yield "right"
    while True:
        yield "wrong"


def sent_and_counted() -> Any:
    calls, answer = 0, None
    while True:
        calls = calls + 1
        sent = yield answer
        answer = "right" if calls < 900 and sent == 3 else "wrong"


@pytest.mark.parametrize("program", [sent_from_a_supply, sent_and_counted])
def test_what_takes_values_is_set_ahead_without_being_called(program: Callable[[], Any]) -> None:
    takes = program()
    next(takes)
    numbers = found(lambda: takes.send(3), [{"takes": takes}])
    assert numbers
    assert takes.send(3) == "right"
    all_ahead(numbers, 0, 0, 2000)
    assert takes.send(3) == "wrong"


def test_a_coroutine_is_set_ahead_too() -> None:
    @types.coroutine
    def wait() -> Any:
        return (yield)

    async def work() -> None:
        calls = 0
        while calls < 900:
            step = await wait()
            calls = calls + step

    takes = work()
    takes.send(None)
    all_ahead(found(lambda: takes.send(1), [{"takes": takes}]), 0, 0, 2000)
    with pytest.raises(StopIteration):
        takes.send(1)


def test_a_generator_that_runs_or_has_ended_has_no_variables() -> None:
    ended = (number for number in range(0))
    assert next(ended, None) is None
    assert found(lambda: None, [{"ended": ended}]) == []


def test_a_number_that_refuses_stays_where_it_is() -> None:
    class Bounded:
        calls: float
        others: float

        def __init__(self) -> None:
            self.__dict__["calls"], self.__dict__["others"] = 0, 0

        def __setattr__(self, name: str, value: float) -> None:
            if name == "calls" and value > 900:
                raise ValueError("more than it takes")
            self.__dict__[name] = value

    Bounded.__module__ = __name__
    own = Bounded()

    def call() -> None:
        own.calls = own.calls + 1
        own.others = own.others + 1

    numbers = found(call, [{"own": own}])
    all_ahead(numbers, 0, 0, 2000)
    assert own.others > 2000
    assert own.calls < 900


def test_what_raises_when_it_is_looked_at_is_left_out() -> None:
    class Shy:
        __slots__ = ("calls",)

        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

    Shy.__module__ = __name__
    own = {"shy": Shy(), "calls": 0}

    def call() -> None:
        own["calls"] = int(own["calls"]) + 1

    assert len(found(call, [own])) == 1
