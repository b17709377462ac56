"""A function that stands in for another leads to nothing of the verifier's, wherever one begins to look."""

from __future__ import annotations

import functools
import gc
import inspect
import time
import types
from typing import Any

import pytest

from dice.kernels.candidate.opaque import stand_in


def original(first: int, /, second: int = 2, *more: int, third: int = 3, **rest: int) -> list[Any]:
    """Its words."""
    return [first, second, more, third, rest]


class Secret:
    """What must not be found."""

    def __call__(self, *arguments: Any) -> Any:
        if arguments[0] == 0:
            self.fail(arguments)
        return [self.__class__.__name__, *arguments]

    def fail(self, arguments: tuple[Any, ...]) -> None:
        try:
            raise KeyError("inner")
        except KeyError as error:
            raise ValueError("outer") from error


def reachable(start: Any, steps: int = 12) -> list[Any]:
    """All that gc.get_referents leads to, modules and what belongs to everybody left out."""
    found, frontier = {id(start): start}, [start]
    for _ in range(steps):
        frontier = [
            each
            for each in gc.get_referents(*frontier)
            if id(each) not in found and each is not globals() and not isinstance(each, types.ModuleType | type)
        ]
        found |= {id(each): each for each in frontier}
    return list(found.values())


def test_it_does_what_it_is_told_with_every_kind_of_argument() -> None:
    function = stand_in(original, Secret())
    assert function(1) == ["Secret", 1, 2, (), 3, {}]
    assert function(1, 5, 6, third=7, fourth=8) == ["Secret", 1, 5, (6,), 7, {"fourth": 8}]
    with pytest.raises(TypeError, match=r"original\(\) missing 1 required positional argument"):
        function()


def test_it_looks_like_the_original() -> None:
    function = stand_in(original, Secret())
    assert inspect.signature(function) == inspect.signature(original)
    assert inspect.getsource(function) == inspect.getsource(original)
    assert (function.__doc__, function.__module__) == (original.__doc__, original.__module__)
    assert function.__globals__ is globals()


def test_nothing_of_ours_is_reached_from_it() -> None:
    function = stand_in(original, Secret())
    assert not [each for each in reachable(function) if isinstance(each, Secret)]
    assert any(isinstance(each, Secret) for each in reachable(lambda secret=Secret(): secret))  # noqa: B008 - what is looked for
    assert function.__closure__ is None
    (built_in,) = [each for each in function.__code__.co_consts if callable(each)]
    assert [getattr(built_in, name) for name in ("__self__", "__module__")] == [None, None]
    assert not hasattr(built_in, "__wrapped__")


def test_what_it_raises_brings_no_frames_of_ours() -> None:
    function = stand_in(original, Secret())
    with pytest.raises(ValueError, match="outer") as raised:
        function(0)
    error: BaseException | None = raised.value
    while error is not None:
        trace = error.__traceback__
        while trace is not None:
            assert not isinstance(trace.tb_frame.f_locals.get("self"), Secret)
            trace = trace.tb_next
        error = error.__cause__
    assert isinstance(raised.value.__cause__, KeyError)


def test_a_built_in_function_needs_its_signature_told() -> None:
    seconds = inspect.Parameter("seconds", inspect.Parameter.POSITIONAL_ONLY)
    slept: list[float] = []
    function = stand_in(time.sleep, slept.append, inspect.Signature([seconds]))
    assert function(0.25) is None
    assert slept == [0.25]
    assert (function.__name__, function.__module__, function.__doc__) == ("sleep", "time", time.sleep.__doc__)


def test_what_has_no_name_of_its_own_can_be_stood_in_for() -> None:
    signature = inspect.Signature([inspect.Parameter("more", inspect.Parameter.VAR_POSITIONAL)])
    assert stand_in(lambda *more: more, len, signature)(5, 6) == 2
    assert stand_in(functools.partial(int), max, signature)(5, 6) == 6  # max of the tuple
