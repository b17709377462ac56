"""Whether somebody mixes or compares numbers between the kernels: on the host, where no launch and no operator shows it.

A forward is a row of steps: launches, and operators of PyTorch's. What happens between two steps is the host's work: a loop
over `tolist()`, NumPy, C++. To see it alone, the steps are taken apart. One forward is recorded for `base` inputs and one for
`other` ones. Then a forward begins with base inputs of which a few elements are the other ones, and after each step the
memory that it left is written anew: as in the base forward, but for the same few places, where it is as in the other one. So
no number that a step leaves depends on more than its own place, whatever the step has mixed. Memory that is small is left as
in the base forward throughout: a few numbers that kernels have made of many may be compared by the host.

Two such forwards have different places from the other inputs. What a step is led to that differs from the base forward both
times was made of several places in between: a sum, an index of the largest, a median, in whatever code; also the number of
elements by which a pointer was advanced, and which step comes next.
"""

from __future__ import annotations

import bisect
import ctypes
import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from dice.kernels.candidate.addresses import OF_PROGRAMS, are_addresses
from dice.kernels.cpu.runtime import KeptPiece
from dice.kernels.sandbox.leaves import tensors_of

Role = Literal["base", "again", "other", "first", "second"]
"""Of a forward: `again` repeats the base, `first` and `second` are crossed with the other one at different places."""

_PLACE = 16
"""Bytes that come from the same forward: no number is cut."""
_TABLE = 1 << 16
"""Places after which the choice of places repeats itself."""
_SLACK = 32
"""Bytes at the end of a larger piece of memory that may belong to nothing."""
_LONGER = 64
"""Bytes by which a block of the heap may be longer another time."""
_ALIGNED = 16
"""Bytes; an address in memory that is not known says less than the rest."""
MOST_BYTES = 256 << 20
"""Of what one forward keeps."""


@dataclass
class Step:
    """One launch or operator, or the return of forward."""

    name: str
    before: dict[int, torch.Tensor] = field(default_factory=dict)
    """Arguments, and memory that nobody left there before, uint8, by their place among the arguments."""
    after: dict[int, torch.Tensor] = field(default_factory=dict)
    """Memory that it left (of an operator: its results)."""


class CrossedRun(TorchDispatchMode):
    """Records the steps of one forward, and crosses it where it is to be: as a context around the forward, with `launched`
    as what watches launches.

    base, other: earlier runs, for a crossed one. share, seed: the places from the other run. small: bytes up to which memory
    is left as in the base run.
    """

    def __init__(
        self, role: Role, base: CrossedRun | None, other: CrossedRun | None, share: float, seed: int, small: int
    ) -> None:
        super().__init__()
        self.steps: list[Step] = []
        self.inputs: list[torch.Tensor] = []
        self.trusted: int | None = None
        """The last step whose arguments say something, since what it left could not be kept or written anew; None: all do."""
        self._base, self._other = (base, other) if role in ("first", "second") else (None, None)
        self._small = small
        drawn = torch.rand(_TABLE, generator=torch.Generator().manual_seed(seed))
        begin = share if role == "second" else 0.0
        self._places = ((drawn >= begin) & (drawn < begin + share)).repeat_interleave(_PLACE)
        self._left = MOST_BYTES
        self._known: list[tuple[int, int]] = []
        self._whole: dict[int, int] = {}
        self._held: list[torch.UntypedStorage] = []
        self._looking = False

    # ---- inputs ----

    def begin(self, inputs: Any, weights: Iterable[torch.Tensor]) -> None:
        """Keep the inputs; cross them where this run is crossed."""
        for weight in weights:
            self._know(weight)
        tensors = tensors_of(list(inputs))
        for index, tensor in enumerate(tensors):
            if self._base is not None and self._other is not None:
                self._write(tensor, self._base.inputs[index], self._other.inputs[index])
            self.inputs.append(tensor.detach().clone())
            self._know(tensor)

    def add_variation(self, base: CrossedRun, earlier: CrossedRun) -> None:
        """Let this run differ from the base run wherever an earlier one of the same inputs did, and end where they part."""
        for index, step in enumerate(base.steps[: len(self.steps)]):
            if index >= len(earlier.steps) or earlier.steps[index].name != step.name:
                del self.steps[index:]
                break
            for path, mine in step.before.items():
                own, other = (run.steps[index].before.get(path) for run in (self, earlier))
                if own is None or other is None:
                    continue
                size = min(each.numel() for each in (mine, own, other))
                varies = other[:size] != mine[:size]
                own[:size][varies] = ~mine[:size][varies]

    def _know(self, tensor: torch.Tensor) -> None:
        """Memory that is kept, so that nothing else ever lies there."""
        storage = tensor.untyped_storage()
        if tensor.layout is torch.strided and storage.nbytes():
            self._held.append(storage)
            bisect.insort(self._known, (storage.data_ptr(), storage.nbytes()))

    def _lose(self) -> None:
        if self.trusted is None:
            self.trusted = len(self.steps)

    def _write(self, tensor: torch.Tensor, base: torch.Tensor, other: torch.Tensor) -> None:
        """Cross a tensor in place."""
        values = self._crossed(_bytes(base), _bytes(other) if other.shape == base.shape else None)
        tensor.copy_(values.view(base.dtype).reshape(base.shape))

    def _crossed(self, base: torch.Tensor, other: torch.Tensor | None) -> torch.Tensor:
        """Bytes of the base run with those of the other at the chosen places. The ends stay: a total may stand there."""
        if other is None or other.numel() != base.numel() or base.numel() <= max(self._small, 2 * _PLACE):
            return base.clone()
        chosen = self._places.repeat(-(-base.numel() // self._places.numel()))[: base.numel()].clone()
        chosen[:_PLACE] = chosen[-_PLACE:] = False
        return torch.where(chosen, other, base)

    # ---- operators ----

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self._looking:
            return func(*args, **kwargs)
        step = Step(func._schema.name, self._arguments((args, kwargs)))
        result = func(*args, **kwargs)
        kinds = [each.alias_info for each in func._schema.returns]
        index = len(self.steps)
        results = tensors_of(result)
        is_view = any(kind is not None and not kind.is_write for kind in kinds)
        for tensor in [] if is_view else results:
            self._know(tensor)
        if is_view or "empty" in func._schema.name:
            self.steps.append(step)
            return result
        before, other = _left_by(self._base, index), _left_by(self._other, index)
        for number, tensor in enumerate(results):
            if tensor.layout is not torch.strided or tensor.is_complex():
                self._lose()
                continue
            if self._base is not None:
                theirs, mine = other.get(number), before.get(number)
                if mine is None or mine.numel() != tensor.numel() * tensor.element_size():
                    self._lose()
                else:
                    tensor.copy_(self._crossed(mine, theirs).view(tensor.dtype).reshape(tensor.shape))
            step.after[number] = self._kept(_bytes(tensor))
        self.steps.append(step)
        return result

    def _arguments(self, tree: Any) -> dict[int, torch.Tensor]:
        found: dict[int, torch.Tensor] = {}
        for number, leaf in enumerate(tree_leaves(tree)):
            if isinstance(leaf, torch.Tensor):
                if leaf.layout is torch.strided and leaf.device.type == "cpu" and not leaf.is_complex():
                    found[number] = self._kept(_bytes(leaf))
            elif isinstance(leaf, bool | int | float):
                found[number] = torch.tensor(leaf, dtype=torch.float64).reshape(1).view(torch.uint8)
        return found

    def _kept(self, data: torch.Tensor) -> torch.Tensor:
        self._left -= data.numel()
        if self._left < 0:
            self._lose()
            return data[:0]
        return data

    # ---- outputs ----

    def returned(self, output: Any) -> None:
        """What forward has returned: a last step, which is led to the output. So what the host does after the last launch
        shows, too."""
        self._looking = True
        try:
            self.steps.append(Step("return", self._arguments(output)))
        finally:
            self._looking = False

    # ---- launches ----

    def launched(self, pieces: list[KeptPiece]) -> None:
        """One launch, with what was kept of it."""
        self._looking = True
        try:
            self._take(pieces)
        finally:
            self._looking = False

    def _take(self, pieces: list[KeptPiece]) -> None:
        step, index = Step("launch"), len(self.steps)
        known = sorted(
            [*self._known, *(each for each in self._whole_of(pieces) if _behind(self._known, each[0]) is None)]
        )
        earlier: dict[int, KeptPiece] = {}
        left: dict[int, KeptPiece] = {}
        ends: dict[tuple[int, int], int] = {}
        for piece in pieces:
            size = piece.data.numel() if not piece.address else _behind(known, piece.address)
            if piece.stood_in is not None:
                path, place = piece.stood_in
                if place >= ends.get((piece.moment, path), place + 1):
                    continue  # left by somebody else, behind memory that ends before it
            elif piece.address and size is not None:
                ends[piece.moment, piece.path] = size
            cut = piece if size is None else dataclasses.replace(piece, data=piece.data[:size])
            if piece.moment % 2 == 0:
                earlier[piece.address] = cut
                if size is not None:
                    step.before[2 * piece.path + bool(piece.address)] = self._kept(_told(cut.data, known))
            elif piece.address and not _same(cut, earlier.get(piece.address)):
                if size is None or size > piece.data.numel():  # of unknown size, or too large
                    self._lose()
                else:
                    left[piece.path] = cut
        if self._base is not None and index < len(self._base.steps):
            before, other = _left_by(self._base, index), _left_by(self._other, index)
            if before.keys() != left.keys():
                self._lose()
            for path in before.keys() & left.keys():
                self._rewrite(left[path], before[path], other.get(path), known)
        step.after = {path: self._kept(piece.data.clone()) for path, piece in left.items()}
        self.steps.append(step)

    def _whole_of(self, pieces: Sequence[KeptPiece]) -> list[tuple[int, int]]:
        """Addresses and sizes of the allocations that arguments lead to. Memory that an earlier launch has left as it is now
        is not among the pieces again."""
        whole = {each.address: each.data.numel() for each in pieces if each.address and each.whole}
        words = {word for each in pieces if not each.address for word in _words(each.data).tolist()}
        still = {word: self._whole[word] for word in words & self._whole.keys() - whole.keys()}
        self._whole |= whole
        return [*(still | whole).items()]

    def _rewrite(
        self, piece: KeptPiece, base: torch.Tensor, other: torch.Tensor | None, known: Sequence[tuple[int, int]]
    ) -> None:
        """Cross what lies at a piece's address, and the copy of it."""
        size = min(base.numel(), piece.data.numel())
        if max(base.numel(), piece.data.numel()) > size + _LONGER:
            self._lose()
            return
        piece = dataclasses.replace(piece, data=piece.data[:size])
        values = self._crossed(base[:size], None if other is None else other[:size])
        values = torch.where(_is_address(piece.data, known), piece.data, values)
        piece.data.copy_(values)
        ctypes.memmove(piece.address, values.data_ptr(), values.numel())


def _left_by(run: CrossedRun | None, index: int) -> dict[int, torch.Tensor]:
    """What a step of an earlier run left; nothing where there is none."""
    return run.steps[index].after if run is not None and index < len(run.steps) else {}


def made_between(base: CrossedRun, again: CrossedRun, runs: Sequence[CrossedRun]) -> int:
    """How many bytes of what steps are led to differ from the base run in each of `runs`, while they are the same in `again`.
    Where all of `runs` have another step than the base run, that counts as one; what follows it says nothing."""
    count = 0
    for index, step in enumerate(base.steps):
        if index >= len(again.steps) or again.steps[index].name != step.name:
            break
        if any(len(run.steps) <= index for run in runs) or any(
            run.trusted is not None and run.trusted < index for run in (base, again, *runs)
        ):
            break
        others = [run.steps[index] for run in runs]
        if any(other.name != step.name for other in others):
            return count + all(other.name != step.name for other in others)
        for path, mine in step.before.items():
            found = [again.steps[index].before.get(path), *(other.before.get(path) for other in others)]
            sizes = [0 if each is None else each.numel() for each in (mine, *found)]
            if max(sizes) > min(sizes) + (_LONGER if min(sizes) > _LONGER else 0):
                continue
            again_, *changed = (each[: min(sizes)] for each in found if each is not None)
            differs = mine[: min(sizes)] == again_
            for each in changed:
                differs &= mine[: min(sizes)] != each
            count += int(differs.sum())
    return count


def _same(piece: KeptPiece, earlier: KeptPiece | None) -> bool:
    return earlier is not None and torch.equal(piece.data, earlier.data)


def _told(data: torch.Tensor, known: Sequence[tuple[int, int]]) -> torch.Tensor:
    """What a piece says by itself: in the place of an address, how far behind the beginning of its memory it is. known:
    addresses and sizes in rising order."""
    data = data[: data.numel() - (_SLACK if data.numel() > 2 * _SLACK else 0)].clone()
    words = _words(data)
    least, most = (known[0][0], sum(known[-1])) if known else (0, 0)
    likely = are_addresses(words, OF_PROGRAMS)
    for place in (likely | ((words >= least) & (words < most))).nonzero().flatten().tolist():
        address = int(words[place])
        begin = _begin(known, address)
        if begin is not None:
            words[place] = address - begin[0]
        elif likely[place]:
            words[place] = address % _ALIGNED
    return data


def _begin(known: Sequence[tuple[int, int]], address: int) -> tuple[int, int] | None:
    """Address and size of the memory in which an address lies."""
    at = bisect.bisect_right(known, (address, 1 << 62)) - 1
    return known[at] if at >= 0 and address < sum(known[at]) else None


def _behind(known: Sequence[tuple[int, int]], address: int) -> int | None:
    """Bytes from an address to the end of its memory."""
    found = _begin(known, address)
    return None if found is None else sum(found) - address


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    flat = torch.empty(tensor.numel(), dtype=tensor.dtype).copy_(tensor.detach().reshape(-1))
    return flat.view(torch.uint8)


def _words(data: torch.Tensor) -> torch.Tensor:
    """The whole words among some bytes, in the same memory."""
    return data[: data.numel() // 8 * 8].view(torch.int64)


def _is_address(data: torch.Tensor, known: Sequence[tuple[int, int]]) -> torch.Tensor:
    """Which bytes belong to an address of known memory: in another forward it lies elsewhere."""
    words = _words(data)
    found = are_addresses(words, OF_PROGRAMS)
    for place in found.nonzero().flatten().tolist():
        found[place] = _begin(known, int(words[place])) is not None
    return torch.nn.functional.pad(found.repeat_interleave(8), (0, data.numel() - 8 * found.numel()))


def small_bytes(inputs: Iterable[torch.Tensor]) -> int:
    """Up to this size memory is small beside the inputs: one number of four bytes for 32 elements, as a warp leaves."""
    return max((tensor.numel() for tensor in inputs if tensor.is_floating_point()), default=0) // 8
