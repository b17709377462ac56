"""A candidate with things that outlive a call, for rules about what differs between calls."""

from __future__ import annotations

TEXT = """
import collections, functools, heapq, itertools, operator
import torch
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="ext", cpp_sources="", functions=["f"])
CALLS, WAYS = [], [ext.f, torch.relu]
TURNS = itertools.cycle(WAYS)


def note():
    pass


def tick(held):
    held.append(1)
    return len(held) > 9


def steps():
    for _ in range(9):
        yield ext.f
    while True:
        yield torch.relu


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.held, self.table, self.text, self.number, self.first = [], {{}}, "", 0, True
        self.last = None
        self.turns = itertools.cycle([ext.f, torch.relu])
        self.rooms = itertools.cycle([1, 2])
        self.steps = steps()
        self.run = ext.f
        self.queue = collections.deque([ext.f, torch.relu])

    def more(self, x, calls=[], turns=itertools.cycle([ext.f, torch.relu])):
        {1}

    def forward(self, x):
        {0}
"""
"""{0}: the body of forward. {1}: that of another method, with default arguments that last."""
