"""What outlives a call and follows its inputs, overwritten a piece of memory at a time.

A program may keep a step of its work in the place of the answer (`dice.kernels.candidate.kept_answers`): a product, an order.
Such numbers are others after other inputs, and stay when the same ones come again; a counter moves on. A program that
computes writes them anew before it reads them.
"""

from __future__ import annotations

from collections.abc import Container

import torch

from dice.kernels.candidate.addresses import OF_PROGRAMS, are_addresses
from dice.kernels.candidate.advancing import Look, Region

_WORDS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Types of an element's bits, by its size."""
_FEWEST = 16
"""Words that follow: fewer may be sizes, or what a lock holds."""
_SMALL = 1 << 20
"""Below it, memory of an unknown type is taken for an integer."""


def followers(first: Look, second: Look, third: Look, spared: Container[object]) -> list[tuple[Region, torch.Tensor]]:
    """Pieces of memory with a mask of their words [n] that follow the inputs, the largest first, then thirds of them: others
    were given before the second look than before the first, and the same again before the third. `spared`: keys that are left
    out."""
    found = list[tuple[Region, torch.Tensor]]()
    for key in first.regions.keys() & second.regions.keys() & third.regions.keys():
        region = third.regions[key]
        looks = [look.regions[key].copy for look in (first, second, third)]
        if key in spared or len({look.nbytes for look in looks}) > 1 or looks[0].element_size() not in _WORDS:
            continue
        before, after, again = (_bits(look) for look in looks)
        follows = (before != after) & (after == again)
        if len(region.kinds) > 1:
            follows &= ~(_addresses(before) | _addresses(after))
        if int(follows.sum()) >= _FEWEST:
            found.append((region, follows))
    found.sort(key=lambda piece: -int(piece[1].sum()))
    return found + [(region, part) for region, follows in found for part in _thirds(follows)]


def _thirds(mask: torch.Tensor) -> list[torch.Tensor]:
    """Of its places. Beside what is kept there may lie samples of the inputs, by which the candidate finds that they are the
    same: they are overwritten in some of the thirds alone."""
    places = mask.nonzero().reshape(-1)
    parts = places.tensor_split(3)
    return [torch.zeros_like(mask).index_fill(0, part, True) for part in parts]


def overwrite(region: Region, places: torch.Tensor) -> int:
    """Put NaN there, 0 where there are integers; how many words are overwritten."""
    live, kept = region.live(), region.copy
    if live.nbytes != kept.nbytes:
        return 0
    words = _bits(live)
    places = places & (_bits(kept) == words.cpu())
    unknown = len(region.kinds) > 1
    whole = _bits(kept).abs() < _SMALL if unknown else torch.full_like(places, not kept.is_floating_point())
    words[(places & whole).to(words.device)] = 0
    words[(places & ~whole).to(words.device)] = -1
    return int(places.sum())


def _bits(memory: torch.Tensor) -> torch.Tensor:
    return memory.reshape(-1).view(_WORDS[memory.element_size()])


def _addresses(words: torch.Tensor) -> torch.Tensor:
    """Which words of four bytes are halves of addresses."""
    taken = torch.zeros_like(words, dtype=torch.bool)
    even = words.numel() // 2 * 2
    taken[:even] = are_addresses(words[:even].view(torch.int64), OF_PROGRAMS).repeat_interleave(2)
    return taken
