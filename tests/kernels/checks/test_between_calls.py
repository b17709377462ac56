"""What outlives a call of forward, and differs after it."""

from __future__ import annotations

import ast

import pytest
from lasting_model import TEXT

from dice.kernels.checks.between_calls import between_calls
from dice.kernels.checks.python_source import PythonSource

MEMO = """t = self.table.get(1)
if t is None:
    if len(self.table) > 8:
        self.table.clear()
    t = self.table[1] = ext.f(x)
return t"""


def stepped(body: str, more: str = "pass") -> set[str]:
    indent = "\n        "
    source = PythonSource(TEXT.format(body.replace("\n", indent), more.replace("\n", indent)))
    return {name for _, name in between_calls(source).stepped}


@pytest.mark.parametrize(
    ("body", "thing"),
    [
        ("self.number += 1", "number"),
        ("self.number = self.number * 5 % 4096", "number"),
        ("self.number = 1 + len(self.held) + self.number", "number"),
        ("self.held = [*self.held, 1]", "held"),
        ("self.held = self.held[1:]", "held"),
        ("self.held[0] = self.held[0] + 1", "held"),
        ("self.held[:1] = []", "held"),
        ("del self.held[0]", "held"),
        ("self.text = f'{self.text}.'", "text"),
        ("self.table[len(self.table)] = x", "table"),
        ("n = self.table.get(0)\nif n is None:\n    n = 0\nn = n + 1\nself.table[0] = n", "table"),
        ("n = self.table.get(0)\ntry:\n    n = n + 1\nfinally:\n    self.table[0] = n", "table"),
        ("for n in [self.table.get(0) + 1]:\n    self.table[0] = n", "table"),
        ("if n := self.table.get(0, 0) + 1:\n    self.table[0] = n", "table"),
        ("n = 0\ndef bump():\n    nonlocal n\n    n = self.table.get(0) + 1\nbump()\nself.table[0] = n", "table"),
        ("n = self.table.get(0)\nif n is None:\n    n = self.table[0] = [0]\nn[0] += 1", "table"),
        ("n = self.table.get(0)\nm = n\nn = None\nm.append(1)", "table"),
        ("self.table.setdefault(len(self.table), x)", "table"),
        (MEMO.replace("get(1)", "get(2)"), "table"),
        (MEMO.replace("is None", "is not None"), "table"),
        (MEMO.replace("    if len(self.table) > 8:\n    ", ""), "table"),
        (MEMO.replace("    t = self.table[1]", "    if len(self.table):\n        t = self.table[1]"), "table"),
        (MEMO.replace("return t", "self.table.clear()\nreturn t"), "table"),
        (MEMO.replace("self.table.clear()", "self.held.clear()"), "held"),
        (MEMO.replace("t = self", "self.table = {}\nt = self", 1), "table"),
        ("heapq.heappush(self.held, 1)", "held"),
        ("operator.setitem(self.held, 0, 1)", "held"),
        ("held = self.held\nheld.append(1)", "held"),
        ("push = self.held.append\npush(1)", "held"),
        ("if self.first:\n    push = self.held.append\nelse:\n    push = self.queue.append\npush(1)", "queue"),
        ("tick(self.held)", "held"),
        ("CALLS.append(1)", "CALLS"),
        ("note.calls = getattr(note, 'calls', 0) + 1", "calls"),
        ("setattr(self, 'number', self.number + 1)", "number"),
        ("setattr(self, f'n{len(vars(self))}', 1)", "__dict__"),
        ("n = len(self.__dict__)\nsetattr(self, f'n{n}', 1)", "__dict__"),
        ("table = self.__dict__\ntable['n'] = table.get('n', 0) + 1", "__dict__"),
        ("self.register_buffer(f'b{len(self._buffers)}', None)", "__dict__"),
        ("self.held, self.table = self.table, self.held", "held"),
        ("self.queue.rotate()", "queue"),
        ("return next(self.rooms)", "rooms"),
        ("for room in self.rooms:\n    return room", "rooms"),
        ("return TURNS.__next__()", "TURNS"),
    ],
)
def test_it_differs_by_a_step(body: str, thing: str) -> None:
    assert thing in stepped(body)


def test_default_arguments_and_variables_of_a_function_that_is_left() -> None:
    assert stepped("return self.more(x)", "calls.append(1)") == {"calls"}
    closure = "held = []\ndef run(x):\n    held.append(1)\n    return x\nreturn run"
    source = PythonSource(
        f"def make():\n    {closure.replace(chr(10), chr(10) + '    ')}\nRUN = make()\n"
        "class ModelNew:\n    def forward(self, x):\n        return RUN(x)\n"
    )
    assert {name for _, name in between_calls(source).stepped} == {"held"}


@pytest.mark.parametrize(
    "body",
    [
        "self.table[x.shape] = x.numel()",
        "if x.shape not in self.table:\n    self.table[x.shape] = torch.empty(x.shape)",
        "t = self.table.get(x.shape)\nif t is None:\n    t = ext.f(x)\n    self.table[x.shape] = t\nreturn t",
        MEMO,
        "t = self.table.get(x.shape)\nif t is None:\n    t = min((1, 2), key=ext.f)\n    self.table[x.shape] = t",
        "self.last = x.shape if self.last is None else self.last",
        "self.last = self.last or {}",
        "self.last = self.last.to(x.device).contiguous()",
        "self.last = torch.empty(self.last.shape)",
        "self.first = False",
        "held = [x]\nheld.append(x)\nreturn held.pop()",
        "number = self.number\nnumber += 1",
        "parts = iter([x, x])\nreturn next(parts)",
        "if not hasattr(self, x.name):\n    setattr(self, x.name, torch.empty(3))",
        "return next(self.parameters()).device",
        "for name in sorted(self.table):\n    x = ext.f(x)",
        "return len(self.held)",
    ],
)
def test_it_stays_or_follows_the_input(body: str) -> None:
    assert not stepped(body)


GROWING = """
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.room = 64

    def forward(self, x):
        while self.room < x.shape[-1]:
            self.room *= 2
        return x
"""


def grows(code: str) -> bool:
    return "room" not in {name for _, name in between_calls(PythonSource(code)).stepped}


@pytest.mark.parametrize(("old", "new"), [("", ""), ("x.shape[-1]", "x.numel()"), ("*= 2", "*= 4")])
def test_what_grows_as_the_input_asks(old: str, new: str) -> None:
    assert grows(GROWING.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("*= 2", "*= 2\n            break"),
        ("*= 2", "*= 2\n        else:\n            self.room *= 2"),
        ("*= 2", "+= 1"),
        ("*= 2", "*= 1"),
        ("*= 2", "*= -2"),
        ("*= 2", "*= x"),
        ("self.room < x.shape[-1]", "self.room < x.shape[-1] * 9"),
        ("self.room < x.shape[-1]", "self.room < x.shape[-1] and self.room % 2"),
        ("self.room < x.shape[-1]", "self.other < x.shape[-1]"),
        ("while", "x = x[: self.room]\n        while"),
        ("while", "self.room = self.room - 63\n        while"),
        ("while", "self.room = 1\n        while"),
        ("while", "setattr(self, 'room', 1)\n        while"),
        ("room = 64", "room = Room(64)"),
        ("room = 64", "room = 64\n        self.register_buffer('room', torch.ones(1))"),
        ("    def forward", "    @property\n    def room(self):\n        return 1\n\n    def forward"),
    ],
)
def test_what_grows_by_a_call(old: str, new: str) -> None:
    changed = GROWING.replace(old, new, 1)
    assert changed != GROWING
    assert not grows(changed)


def test_who_asks() -> None:
    source = PythonSource(TEXT.format("self.number += 1\n        n = self.number\n        return n", "pass"))
    asking = [node for node in source.in_forward if between_calls(source).is_stepped(node)]
    assert sorted({ast.unparse(node) for node in asking}) == ["n", "self.number"]
