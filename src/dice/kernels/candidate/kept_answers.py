"""The last answer, overwritten wherever the candidate may have kept it: in the tensors that it returned, in variables of its
objects, in any tensor that Python has.

A program that computes its answer writes all of it again. One that gives the last answer again, since it has found the same
inputs, gives what stands there now. What other inputs do not change (a table of positions, weights that are looked up) is
no answer.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence
from typing import Literal

import torch

from dice.kernels.sandbox.leaves import tensors_of

Part = Literal["none", "all", "first", "second"]
_PARTS: dict[Part, tuple[float, float]] = {"none": (0, 0), "all": (0, 1), "first": (0, 0.5), "second": (0.5, 1)}
FEWEST = 16
"""Numbers of an answer that are looked for, of which some are no coincidence."""
SHARE = 1 / 4
"""Of an answer that must stand in a piece of memory."""
_MOST_NUMBERS = 1 << 22
_SAMPLE = 1 << 10
"""Numbers of an input by which its copies are found."""
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
    inputs: object = (),
    part: Part = "all",
) -> tuple[int, int]:
    """Put NaN in the place of an answer's numbers: in its own tensors but for those whose memory begins at one of `spared`,
    and in memory that has a share of it. How many there are, and how many were found in that memory, overwritten or not.

    before: copies of the answer to other inputs. kept: pieces of memory, int32 words [n], each with a copy from that time.
    inputs: where their copies stand, nothing is overwritten, though an answer may have their numbers: a candidate that finds
    other inputs than it keeps computes. part: of what is found in each piece, since such a copy may have another order.
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
    whole, (begin, end) = 0, _PARTS[part]
    given = [leaf for leaf in answers_of(inputs) if leaf.dtype == torch.float32 and leaf.is_contiguous()]
    for region, earlier in kept:
        standing = _standing(region, earlier, words)
        if bool(standing.any()):
            for one in given:
                _leave_copies(standing, region, one.detach().reshape(-1))
        places = standing.nonzero().reshape(-1)
        chosen = places[int(begin * len(places)) : int(end * len(places))]
        region[chosen] = -1  # NaN
        overwritten += chosen.numel()
        whole += places.numel()
    return overwritten, whole


def _standing(region: torch.Tensor, earlier: torch.Tensor, answers: Sequence[torch.Tensor]) -> torch.Tensor:
    """Where in a piece of memory numbers of an answer have come to stand [n], bool."""
    standing = torch.zeros_like(region, dtype=torch.bool)
    for words in answers:  # which may lie on a GPU where the memory is the host's
        found = torch.isin(region, words.to(region.device)) & (region != earlier)
        if words.numel() >= FEWEST and int(found.sum()) >= SHARE * words.numel():
            standing |= found
    return standing


def _leave_copies(standing: torch.Tensor, region: torch.Tensor, given: torch.Tensor) -> None:
    """Take off from `standing` the places of an input's copies: where more of its numbers stand in their order than numbers
    of the answer."""
    words, tells = given.view(torch.int32).to(region.device), _tells(given).to(region.device)
    places = tells.nonzero().reshape(-1)
    sample, order = words[places[:: places.numel() // _SAMPLE + 1]].sort()
    if sample.numel() < FEWEST:
        return
    places = places[:: places.numel() // _SAMPLE + 1][order]
    nearest = torch.searchsorted(sample, region).clamp_(max=sample.numel() - 1)
    found = (sample[nearest] == region).nonzero().reshape(-1)
    begins, counts = (found - places[nearest[found]]).unique(return_counts=True)
    for begin in begins[counts >= SHARE * sample.numel()].tolist():
        first, last = max(0, begin), min(region.numel(), begin + words.numel())
        piece, part = slice(first, last), slice(first - begin, last - begin)
        if int(((region[piece] == words[part]) & tells[part]).sum()) > int(standing[piece].sum()):
            standing[piece] = False


def telling_words(numbers: torch.Tensor) -> torch.Tensor:
    """The different ones of fp32 numbers as int32 words [n], without those that occur anywhere."""
    flat = numbers.detach().reshape(-1)
    return flat[_tells(flat)].view(torch.int32).unique()


def _tells(flat: torch.Tensor) -> torch.Tensor:
    """Which numbers do not occur anywhere."""
    plain = (flat.abs() <= _PLAIN) & (flat == flat.round())
    return flat.isfinite() & ~plain
