"""Prints: a few numbers by which the values of a tensor are known again, in whatever order and shape they lie.

Two tensors have equal prints if they hold the same numbers, in any order. They have like prints if that is so after each
slice along some axis was shifted and scaled by numbers of its own: gains of rows or channels, a bias, a factor for all.
"""

from __future__ import annotations

from typing import Any

import torch

_EXTREMES = 8
"""Largest and smallest values of a print; extremes differ between tensors of one distribution, whatever their size."""
_SLICED = 16
"""Largest magnitudes after slices were shifted and scaled."""
_FEWEST = 32
"""Elements of a tensor whose slices tell something."""
_FEWEST_OF_A_SLICE = 5
_AXES = 4
"""Of tensors with more, the last ones count as one."""
_FAMILIES = 2 * _AXES - 1
_HEAD = 3 + 2 * _EXTREMES
_FAMILY = 2 + _SLICED
WIDTH = _HEAD + _FAMILIES * _FAMILY
"""Numbers of a print."""
_MOST = {"cpu": 1 << 22, "cuda": 1 << 27}
"""Elements that get prints, in all: a second of one core, a tenth of a GPU's."""
_MOST_OF_ONE = 1 << 24
"""Elements of a tensor that gets a print, which takes a few times its memory."""
_CLOSE = 1e-3
"""Relative difference of single elements up to which they are the same: PyTorch rounds to TF32 in some operators."""
_CLOSE_MEAN = 2e-6
"""The same of means over very many elements."""
_TELLING = 1e-2
"""Relative spread of the largest magnitudes below which they tell nothing: flags, or numbers with a bound."""


class Prints:
    """Prints of many tensors, up to `most` of them and as long as they do not take too much time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = dict(_MOST)
        self._found: list[torch.Tensor] = []

    def __len__(self) -> int:
        return len(self._found)

    def add(self, value: Any) -> int:
        """Row of a value's print; -1 for what gets none: no tensor, or an empty, sparse, quantized or very large one."""
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided or value.is_quantized:
            return -1
        device, size = value.device.type, value.numel()
        if not 0 < size <= min(_MOST_OF_ONE, self._left.get(device, 0)) or len(self) >= self._most:
            return -1
        self._left[device] -= size
        self._found.append(print_of(value))
        return len(self) - 1

    def stacked(self) -> torch.Tensor:
        """fp64 [n, WIDTH] on the CPU."""
        return torch.stack(self._found) if self._found else torch.empty(0, WIDTH, dtype=torch.float64)


def print_of(tensor: torch.Tensor) -> torch.Tensor:
    """Print of a tensor of at least one element, [WIDTH] in fp64 on the CPU."""
    values = tensor.detach()
    values = torch.view_as_real(values.resolve_conj()) if values.is_complex() else values
    values = values.double().nan_to_num(0.0, 0.0, 0.0).squeeze()
    flat = values.reshape(-1)
    ordered = _largest(flat, _EXTREMES), _largest(-flat, _EXTREMES)
    parts = [flat.new_tensor([flat.numel()]), torch.stack([flat.mean(), flat.square().mean().sqrt()]), *ordered]
    values = values.flatten(_AXES - 1) if values.dim() > _AXES else values
    families = [_sliced(values, axes) for axes in _axes(values.dim())] if tensor.is_floating_point() else []
    print_ = torch.cat([*parts, *families]).cpu()
    return torch.cat([print_, print_.new_zeros(WIDTH - len(print_))])


def equal_prints(prints: torch.Tensor, one: torch.Tensor) -> torch.Tensor:
    """Which of `prints` [n, WIDTH] are of the same numbers as `one` [WIDTH]; bool [n]."""
    size, rms = one[0], one[2]
    few = 0.1 if float(size) < _SLICED else 1.0
    means = (prints[:, 1:3] - one[1:3]).abs() <= rms * (_CLOSE * few / size.sqrt() + _CLOSE_MEAN)
    ends = (prints[:, 3:_HEAD] - one[3:_HEAD]).abs() <= _CLOSE * few * torch.maximum(rms, one[3:_HEAD].abs())
    return (prints[:, 0] == size) & means.all(1) & ends.all(1)


def like_prints(prints: torch.Tensor, one: torch.Tensor) -> torch.Tensor:
    """Which of `prints` [n, WIDTH] are of the same numbers as `one` [WIDTH] up to a shift and a factor for each slice."""
    theirs = prints[:, _HEAD:].view(len(prints), _FAMILIES, 1, _FAMILY)
    mine = one[_HEAD:].view(1, 1, _FAMILIES, _FAMILY)
    slices = (theirs[..., 0] == mine[..., 0]) & (theirs[..., 0] > 0)
    means = (theirs[..., 1] - mine[..., 1]).abs() <= _CLOSE / one[0].sqrt() + _CLOSE_MEAN
    ends = ((theirs[..., 2:] - mine[..., 2:]).abs() <= _CLOSE * mine[..., 2:]).all(-1)
    return (prints[:, 0] == one[0]) & (slices & means & ends).flatten(1).any(1)


def _axes(dim: int) -> list[tuple[int, ...]]:
    """Axes within a slice: all, all but one, the last ones."""
    every = tuple(range(dim))
    found = [every, *(tuple(a for a in every if a != left_out) for left_out in every), *(every[k:] for k in every)]
    return list(dict.fromkeys(axes for axes in found if axes))


def _sliced(values: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
    """Number of slices, mean and largest of the magnitudes when each slice has mean 0 and deviation 1; zeros where this tells
    nothing."""
    nothing = values.new_zeros(_FAMILY)
    outer = [axis for axis in range(values.dim()) if axis not in axes]
    rows = values.permute(*outer, *axes).flatten(len(outer)).flatten(0, -2) if outer else values.reshape(1, -1)
    if rows.numel() < _FEWEST or rows.shape[1] < _FEWEST_OF_A_SLICE:
        return nothing
    size = rows.abs().amax(1, keepdim=True)
    rows = rows - rows.mean(1, keepdim=True)
    deviation = rows.square().mean(1, keepdim=True).sqrt()
    magnitudes = torch.where(deviation > 1e-5 * size, rows / deviation, 0.0).abs().reshape(-1)
    largest = _largest(magnitudes, _SLICED)
    telling = largest[0] - largest[-1] > _TELLING * largest[0]
    return torch.where(telling, torch.cat([values.new_tensor([len(rows)]), magnitudes.mean()[None], largest]), nothing)


def _largest(flat: torch.Tensor, count: int) -> torch.Tensor:
    found = flat.topk(min(count, flat.numel())).values
    return torch.cat([found, found[-1:].expand(count - len(found))])
