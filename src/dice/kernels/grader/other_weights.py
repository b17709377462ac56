"""Other values for the state of a model: its parameters and its buffers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from dice.kernels.candidate.other_values import varied
from dice.kernels.conditions.condition import Weights

OTHER_WEIGHTS: dict[Weights, Callable[[torch.Tensor, int, bool], torch.Tensor]] = {
    "varied": lambda value, seed, learned: varied(value, seed),
    "positive": lambda value, seed, learned: value.abs(),
    "small_buffers": lambda value, seed, learned: value if learned else value * 1e-3,
    # A variance below 0 has no root: buffers keep their signs.
    "far_below_zero": lambda value, seed, learned: -1000.0 * (1.0 + value.abs()) if learned else value,
}
"""Kind -> a function of a floating-point tensor, a seed, and whether it is a parameter."""


@contextlib.contextmanager
def changed_weights(model: torch.nn.Module, values: Mapping[str, Any]) -> Iterator[dict[str, torch.Tensor]]:
    """The model with other values where name and shape fit; yields its state."""
    state = model.state_dict()
    fitting = {
        name: value
        for name, value in values.items()
        if name in state and torch.is_tensor(value) and state[name].shape == value.shape
    }
    before = {name: state[name].clone() for name in fitting}
    try:
        for name, value in fitting.items():
            state[name].copy_(value)
        yield state
    finally:
        for name, value in before.items():
            state[name].copy_(value)
