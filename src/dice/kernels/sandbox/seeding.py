"""The seed of PyTorch's generators, of the devices that a process uses."""

from __future__ import annotations

import torch

_all_generators, _hosts_generator = torch.manual_seed, torch.default_generator.manual_seed
"""Kept: a candidate may put another function in their place."""


def seed_generators(seed: int, device: torch.device) -> None:
    """`torch.manual_seed` for a process that computes on `device`. On the host it would seed no other generator, but keep the
    traceback of its call for three devices that nobody uses: 0.5 ms each time, some sixty times for a candidate."""
    if device.type == "cpu":
        _hosts_generator(seed)
    else:
        _all_generators(seed)
