"""The last answer, overwritten wherever the candidate may have kept it: in the tensors that it returned, in variables of its
objects, in any tensor that Python has.

A program that computes its answer writes all of it again. One that gives the last answer again, since it has found the same
inputs, gives what stands there now. What other inputs do not change (a table of positions, weights that are looked up) is
no answer.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Iterable, Sequence
from typing import Literal

import torch

from dice.kernels.sandbox.leaves import tensors_of

Part = Literal["none", "all"] | int
"""What is overwritten of the numbers that are found in memory. An integer: of places with the same number the one that comes
so many places behind the first."""
FEWEST = 16
"""Numbers of an answer that are looked for, of which some are no coincidence."""
SHARE = 1 / 4
"""Of an answer that must stand in a piece of memory."""
_MOST_NUMBERS = 1 << 22
_SOME = 1 / 4
"""Places of a number beyond whole copies of the answer: it has some numbers several times."""
_PLAIN = 16.0
"""Whole numbers up to it occur everywhere."""


_objects = gc.get_objects  # before a candidate puts another function in its place


def held_tensors() -> list[torch.Tensor]:
    """The tensors of this process that Python has made since it was concealed, wherever they are kept."""
    return [item for item in _objects() if issubclass(type(item), torch.Tensor)]  # isinstance asks the item


def answers_of(outputs: object) -> list[torch.Tensor]:
    """The floating-point tensors of an answer that are not too large to be kept, as they stand. Not those of eight bits, for
    which PyTorch has few operators."""
    leaves = [leaf for leaf in tensors_of(outputs) if leaf.is_floating_point() and leaf.layout is torch.strided]
    return [leaf for leaf in leaves if leaf.element_size() > 1 and 0 < leaf.numel() <= _MOST_NUMBERS]


def overwrite_answers(
    outputs: object,
    before: Sequence[torch.Tensor],
    spared: set[int],
    kept: Iterable[tuple[torch.Tensor, torch.Tensor]],
    part: Part = "all",
) -> tuple[int, int]:
    """Put NaN in the place of an answer's numbers: in its own tensors but for those whose memory begins at one of `spared`,
    and in memory that has a share of it. How many are overwritten, and how many copies were found in that memory.

    before: copies of the answer to other inputs. kept: pieces of memory, int32 words [n], each with a copy from that time.
    part: one of the copies alone, since an answer may have the numbers of its inputs. Where those are overwritten too,
    nothing is equal any more, and the candidate computes.
    """
    overwritten, words = 0, list[torch.Tensor]()
    for tensor, other in zip(answers_of(outputs), before, strict=False):
        if tensor.shape != other.shape:
            continue
        follows = tensor != other
        if tensor.dtype == torch.float32:
            words.append(telling_words(tensor[follows]))
        if tensor.untyped_storage().data_ptr() not in spared:
            tensor.detach().masked_fill_(follows, float("nan"))
            overwritten += int(follows.sum())
    found = [(region, _standing(region, earlier, words).nonzero().reshape(-1)) for region, earlier in kept]
    copies, nth = _copies([region[places].cpu() for region, places in found])
    for (region, places), numbers in zip(found, nth, strict=True):
        chosen = torch.full_like(numbers, part == "all", dtype=torch.bool) if isinstance(part, str) else numbers == part
        region[places[chosen.to(places.device)]] = -1  # NaN
        overwritten += int(chosen.sum())
    return overwritten, copies


def _copies(found: Sequence[torch.Tensor]) -> tuple[int, list[torch.Tensor]]:
    """How many copies of a set of words [n] there are in pieces of memory, and which of its word's places each is, from 0."""
    words = torch.cat([torch.empty(0, dtype=torch.int32), *found])
    _, places, counts = words.unique(return_inverse=True, return_counts=True)
    order = places.argsort(stable=True)
    nth = torch.empty_like(order)
    nth[order] = torch.arange(len(words)) - (counts.cumsum(0) - counts).repeat_interleave(counts)
    return math.ceil(len(words) / max(1, len(counts)) - _SOME), [*nth.split([len(part) for part in found])]


def _standing(region: torch.Tensor, earlier: torch.Tensor, answers: Sequence[torch.Tensor]) -> torch.Tensor:
    """Where in a piece of memory numbers of an answer have come to stand [n], bool."""
    standing = torch.zeros_like(region, dtype=torch.bool)
    for words in answers:  # which may lie on a GPU where the memory is the host's
        found = torch.isin(region, words.to(region.device)) & (region != earlier)
        if words.numel() >= FEWEST and int(found.sum()) >= SHARE * words.numel():
            standing |= found
    return standing


def telling_words(numbers: torch.Tensor) -> torch.Tensor:
    """The different ones of fp32 numbers as int32 words [n], without those that occur anywhere."""
    flat = numbers.detach().reshape(-1)
    plain = (flat.abs() <= _PLAIN) & (flat == flat.round())
    return flat[flat.isfinite() & ~plain].view(torch.int32).unique()
