"""Which operators of `heldout.yaml` a traced program applies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from dice.config import read_yaml, stage_config
from dice.data.leakage.expression import Node, contains, postorder
from dice.data.leakage.report import Applied
from dice.data.leakage.trace import Traced, trace

PLACE = Path(__file__).with_name("heldout.yaml")
_PROGRAM = """
import torch
import torch.nn.functional as F

class Model(torch.nn.Module):
    def forward(self, x, y, z, v, w, i):
        return {0}

def get_inputs():
    return [torch.rand(4, 6), torch.rand(4, 6), torch.rand(4, 6), torch.rand(4, 6), torch.rand(4, 6), torch.arange(4)]

def get_init_inputs():
    return []
"""


@stage_config
class Entry:
    """One operator of the file."""

    spellings: tuple[str, ...] = ()
    """Expressions in x, y, z, v, w (any values) and i (indices)."""
    dispatched: tuple[str, ...] = ()
    """PyTorch's operators that are this one."""


@dataclass(frozen=True)
class HeldOut:
    """One operator that nothing is trained on."""

    name: str
    patterns: tuple[Node, ...]
    dispatched: frozenset[str]

    def is_in(self, traced: Traced) -> bool:
        """Whether the program applies it."""
        if self.dispatched & traced.operators.keys():
            return True
        return any(contains(node, pattern) for pattern in self.patterns for node in postorder(traced.outputs))


@cache
def held_out() -> tuple[HeldOut, ...]:
    """The operators of `heldout.yaml`, their spellings traced."""
    entries = TypeAdapter(dict[str, Entry]).validate_python(read_yaml(PLACE))
    return tuple(
        HeldOut(
            name,
            tuple(trace(_PROGRAM.format(text)).outputs[0] for text in entry.spellings),
            frozenset(entry.dispatched),
        )
        for name, entry in entries.items()
    )


def applied(traced: Traced) -> list[str]:
    """Names of the held-out operators that the program applies."""
    return [one.name for one in held_out() if one.is_in(traced)]


def all_applied(traced: Traced) -> Applied:
    """All that the program applies, for reports."""
    return Applied(dict(traced.operators), tuple(applied(traced)))
