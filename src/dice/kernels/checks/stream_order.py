"""The order in which the functions of a C++ source work in side streams and wait for them.

A function is read from its beginning to its end, and into the functions, named lambdas, constructors and destructors of the
source that it runs. Where the order depends on what is true at run time, in a loop with a condition say, the wait comes last.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Literal

from dice.kernels.checks.trip_counts import loop_end
from dice.kernels.source.cuda_source import CudaSource
from dice.kernels.source.declaration import Function
from dice.kernels.source.lexer import partner, words

Mark = Literal["work", "wait"]

_DEEP = 32
"""Functions that call each other."""
_CHOICES = words("if ? switch break continue")
_KEPT = words("static thread_local")


def waits_at_last(source: CudaSource, marks: Mapping[int, Mark]) -> bool:
    """Whether a function that no other one runs waits behind its last work, or only waits; or none of them works at all.

    marks: what tokens do, by their index.
    """
    read = {index for each in source.outer_functions for index in range(each.brace, each.last + 1)}
    if any(mark == "wait" and index not in read for index, mark in marks.items()):
        return True  # in something that is not read as a function
    order = _Order(source, marks)
    ends = {order.end(function) for function in source.functions if order.begins(function)}
    return "wait" in ends or "work" not in ends


class _Order:
    """Functions of a source by what they do last."""

    def __init__(self, source: CudaSource, marks: Mapping[int, Mark]) -> None:
        self._tokens, self._marks = source.tokens, marks
        self._ends: dict[int, Mark | None] = {}
        self._depth = 0
        self._free = {item.function.brace for item in source.items if item.function is not None}
        self._mentions = Counter(token.text for token in source.tokens if token.kind == "identifier")
        self._inside: defaultdict[int, dict[int, Function]] = defaultdict(dict)
        """Functions that stand in the body of another one, by where they begin."""
        self._named: defaultdict[str, list[Function]] = defaultdict(list)
        outer: list[Function] = []
        for function in source.functions:
            while outer and outer[-1].last < function.brace:
                outer.pop()
            if outer:
                self._inside[outer[-1].brace][function.first] = function
            outer.append(function)
            self._named[self._name(function)].append(function)
        self._run = {name for function in source.functions for name in self._runs(function)}

    def begins(self, function: Function) -> bool:
        """Whether something else than the source's functions runs it, or at a place that is not known. A method that nothing
        mentions is never run."""
        if self._name(function) in self._run or self._runs_at_once(function):
            return False
        return function.brace in self._free or not function.name or self._mentions[function.name.removeprefix("~")] > 1

    def end(self, function: Function) -> Mark | None:
        """What a function does last."""
        if function.brace not in self._ends:
            if self._depth > _DEEP:
                return None
            self._ends[function.brace] = None  # of one that calls itself
            self._depth += 1
            self._ends[function.brace] = self._read(function)
            self._depth -= 1
        return self._ends[function.brace]

    def _read(self, function: Function) -> Mark | None:
        tokens = self._tokens
        last: Mark | None = None
        waited = -1
        loop: tuple[int, int] | None = None
        at_end: list[str] = []
        for index in self._own(function):
            if loop is not None and index >= loop[1]:
                if last == "work" and waited >= loop[0] and self._chooses(*loop):
                    last, waited = "wait", index
                loop = None
            if loop is None and (end := loop_end(tokens, index)) is not None:
                loop = index, end
            inner = self._inside[function.brace].get(index)
            done = self._marks.get(index)
            if inner is not None:
                does = self.end(inner)
                runs = self._runs_at_once(inner) or (does == "work" and self._is_unnamed(inner))
                done = does if runs else None
            elif done is None:
                name, runs, left = self._step(index)
                done = self._end_of(name) if runs else None
                at_end += [f"~{name}"] if left else []
            last = done or last
            waited = index if done == "wait" else waited
        for name in reversed(at_end):
            last = self._end_of(name) or last
        return last

    def _own(self, function: Function) -> Iterator[int]:
        """Places of a function's body that are in no function inside it; of such a one, where it begins."""
        inside, index = self._inside[function.brace], function.brace
        while index <= function.last:
            yield index
            index = inside[index].last + 1 if index in inside else index + 1

    def _runs(self, function: Function) -> Iterator[str]:
        """Names of what a function runs, or keeps, at a place that is known; itself left out."""
        for index in self._own(function):
            name, runs, left = self._step(index)
            if name and name != self._name(function):
                kept = not runs and not left
                yield from [name, f"~{name}"] if left or kept else [name]

    def _step(self, index: int) -> tuple[str, bool, bool]:
        """The function or class that tokens[index] names, whether it runs there, and whether an object goes at the end; one
        that outlives the call does neither."""
        tokens = self._tokens
        name = tokens[index].text
        known, is_class = name in self._named, f"~{name}" in self._named
        if not (known or is_class) or index + 2 >= len(tokens):
            return "", False, False
        behind = index + 1
        if tokens[behind].text == "<":
            behind = (partner(tokens, behind) or behind) + 1
        following = tokens[behind] if behind < len(tokens) else tokens[index]
        if following.kind == "identifier":  # `Type name;`
            before = {token.text for token in tokens[max(0, index - 3) : index]}
            kept = bool(before & _KEPT)
            return name, not kept, not kept
        if following.text in ("(", "{"):
            return name, True, is_class
        return "", False, False

    def _end_of(self, name: str) -> Mark | None:
        """What the functions of a name do last; of several, the wait counts."""
        ends = {self.end(function) for function in self._named.get(name, ())}
        return "wait" if "wait" in ends else "work" if "work" in ends else None

    def _name(self, function: Function) -> str:
        """Its name; of a lambda, the variable's that it is given to, or one that nobody writes."""
        if function.name:
            return function.name
        first = function.first
        given = first >= 2 and self._tokens[first - 1].text == "="
        return self._tokens[first - 2].text if given and not self._runs_at_once(function) else f"[{first}]"

    def _is_unnamed(self, function: Function) -> bool:
        """Whether it is a lambda that is given to a function or a macro: in doubt that works there, and waits later."""
        return self._name(function).startswith("[")

    def _runs_at_once(self, function: Function) -> bool:
        """Whether it is a lambda that is called where it stands."""
        behind = function.last + 1
        return not function.name and behind < len(self._tokens) and self._tokens[behind].text == "("

    def _chooses(self, start: int, end: int) -> bool:
        return any(token.text in _CHOICES for token in self._tokens[start:end])
