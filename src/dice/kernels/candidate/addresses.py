"""Words of memory that are taken for addresses: they differ from process to process, and say nothing about values.

A word is eight aligned bytes. Whether it is an address can only be guessed from its size: a user's addresses end at 2**47.
"""

from __future__ import annotations

import torch

OF_PROGRAMS = 0x55 << 40
"""Programs, libraries and their heaps lie from here on: the guess for whoever must not overlook a large number."""
OF_ANYTHING = 1 << 40
"""The guess for whoever must not take an address for a number."""
_END = 1 << 47


def are_addresses(words: torch.Tensor, least: int) -> torch.Tensor:
    """Which words (int64) are taken for addresses. `least`: OF_PROGRAMS or OF_ANYTHING."""
    return (words > least) & (words < _END)
