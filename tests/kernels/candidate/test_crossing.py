"""What is made between the steps of a forward, whatever the steps make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import _disable_current_modes

from dice.kernels.candidate.crossing import CrossedRun, made_between, small_bytes
from dice.kernels.cpu.runtime import KeptPiece

WIDTH = 512
SHARE = 0.2


class Kernels:
    """Launches of a forward, as their watcher is told of them; with operators that no run records. stale: behind each
    tensor's end stands an address that somebody has left there, and the memory behind it has no end that is known."""

    def __init__(self, run: CrossedRun, stale: bool = False) -> None:
        self._run = run
        self._stale = stale
        self._moment = 0

    @property
    def is_crossed(self) -> bool:
        return self._run._base is not None

    def launch(self, kernel: Callable[..., torch.Tensor], *arguments: torch.Tensor | int) -> torch.Tensor:
        """A kernel on tensors and numbers; its result lies in new memory."""
        with _disable_current_modes():  # what a kernel does is no operator
            pieces = [piece for index, value in enumerate(arguments) for piece in self._pieces(index, value, 0)]
            out = kernel(*arguments).clone()
            pieces += self._pieces(len(arguments), out, 1)
        self._moment += 2
        self._run.launched(pieces)
        return out

    def _pieces(self, index: int, value: torch.Tensor | int, after: int) -> list[KeptPiece]:
        number = torch.tensor([value.data_ptr() if torch.is_tensor(value) else value])
        found = [KeptPiece(self._moment + after, index << 40, 0, True, number.view(torch.uint8))]
        if torch.is_tensor(value):
            data = value.detach().clone().reshape(-1).view(torch.uint8)
            found.append(KeptPiece(self._moment + after, index << 40, value.data_ptr(), True, data))
            if self._stale:
                anything = torch.randint(256, (4096,), dtype=torch.uint8)
                path = index << 40 | data.numel() + 8 + 1
                found.append(KeptPiece(self._moment + after, path, 0x555500000000, False, anything))
        return found


Forward = Callable[[Kernels, torch.Tensor], Any]


def made(forward: Forward, size: int = WIDTH, seed: int = 0, stale: bool = False, repeats: int = 1) -> int:
    """Bytes that the host of a forward has made of many elements, in an order of the inputs by `seed`. repeats: forwards
    with the same inputs as the base."""
    order = torch.Generator().manual_seed(seed)
    low, high = (torch.linspace(start, start + 1, size)[torch.randperm(size, generator=order)] for start in (-1, 1))
    runs: dict[str, CrossedRun] = {}
    repeated = [("again", low)] * repeats
    for role, values in [("base", low), *repeated, ("other", high), ("first", low), ("second", low)]:
        inputs = values.clone()
        run = CrossedRun(role, runs.get("base"), runs.get("other"), SHARE, 11, small_bytes([inputs]))  # pyright: ignore[reportArgumentType]
        run.begin([inputs], [])
        with run:
            output = forward(Kernels(run, stale), inputs)
        run.returned(output)
        if role in runs:
            run.add_variation(runs["base"], runs[role])
        runs[role] = run
    return made_between(runs["base"], runs["again"], [runs["first"], runs["second"]])


def test_a_pointer_into_a_workspace_is_the_same_whether_its_memory_has_changed_or_not() -> None:
    """The runtime keeps memory again only where it differs from what the launch before has left."""
    workspace = torch.zeros(2 * WIDTH)

    def forward(kernels: Kernels, x: torch.Tensor) -> torch.Tensor:
        kernels.launch(lambda x, *_: x, x, workspace)
        begin = workspace if kernels.is_crossed else workspace.data_ptr()
        return kernels.launch(lambda *_: torch.zeros(4), begin, workspace.data_ptr() + 4 * WIDTH)

    assert made(forward) == 0


def coded(x: torch.Tensor) -> torch.Tensor:
    return (x.view(torch.int32) ^ 0x5A17C3E9).view(torch.int32)


def plain(words: torch.Tensor) -> list[float]:
    return torch.tensor([word ^ 0x5A17C3E9 for word in words.tolist()], dtype=torch.int32).view(torch.float32).tolist()


def test_what_varies_by_itself_is_not_the_hosts() -> None:
    """Sums of atomics in memory that outlives a call, in any order, are one of a few numbers."""
    generator = torch.Generator().manual_seed(3)

    def forward(kernels: Kernels, x: torch.Tensor) -> None:
        with _disable_current_modes():  # no step of this forward
            kept = torch.randint(2, (96,), generator=generator) / 8
        kernels.launch(lambda kept, x: kept + x[:96], kept, x)

    assert made(forward) > 0
    assert made(forward, repeats=16) == 0
    assert made(place_from_a_code, repeats=16) > 0


def place_from_a_code(kernels: Kernels, x: torch.Tensor) -> None:
    kernels.launch(lambda x: x.sum().reshape(1), x)
    row = plain(kernels.launch(coded, x))
    kernels.launch(lambda place: torch.tensor([place]), row.index(max(row)))


def median_of_a_softmax(kernels: Kernels, x: torch.Tensor) -> None:
    shares = kernels.launch(lambda x: torch.softmax(x, 0), x)
    kernels.launch(
        lambda place: torch.tensor([place]), sorted(range(len(x)), key=shares.tolist().__getitem__)[WIDTH // 2]
    )


def address_of_the_largest(kernels: Kernels, x: torch.Tensor) -> None:
    kernels.launch(lambda x: x.clone(), x)
    numbers = x.tolist()
    place = numbers.index(max(numbers))
    kernels.launch(lambda x: x[:1], x[place : place + 1])


def next_step_by_the_largest(kernels: Kernels, x: torch.Tensor) -> None:
    if max(kernels.launch(lambda x: x * 2, x).tolist()) > 0.5:
        torch.zeros(3)
    kernels.launch(lambda x: x[:1], x)


def sums_by_numbers(kernels: Kernels, x: torch.Tensor) -> None:
    kernels.launch(lambda x: x.sum().reshape(1), x)
    total = sum(int(number * 1e6) for number in kernels.launch(lambda x: -x, x).tolist())
    kernels.launch(lambda n: torch.tensor([n]), total)


def returned_sums(kernels: Kernels, x: torch.Tensor) -> dict[str, torch.Tensor]:
    doubled = kernels.launch(lambda x: 2 * x, x)
    with _disable_current_modes():  # a loop in C++
        return {"sums": doubled.reshape(-1, 32).sum(1)}


@pytest.mark.parametrize(
    "forward",
    [
        place_from_a_code,
        median_of_a_softmax,
        address_of_the_largest,
        next_step_by_the_largest,
        sums_by_numbers,
        returned_sums,
    ],
    ids=lambda forward: forward.__name__,
)
def test_what_the_host_chooses_is_seen(forward: Forward) -> None:
    """Not in every order: both sets may lead to the same place as one of them. Of eight orders most show it."""
    assert sum(made(forward, seed=seed) > 0 for seed in range(8)) >= 6


def test_what_stands_behind_the_end_of_memory_says_nothing() -> None:
    assert made(place_from_a_code) > 0
    assert made(place_from_a_code, stale=True) == made(place_from_a_code)


def two_launches(kernels: Kernels, x: torch.Tensor) -> None:
    largest = kernels.launch(lambda x: x.reshape(-1, 32).max(1).values, x)
    kernels.launch(lambda parts: parts.max().reshape(1), largest)


def winners_of_blocks_compared(kernels: Kernels, x: torch.Tensor) -> None:
    parts = kernels.launch(lambda x: x.reshape(-1, 64).max(1).values, x).tolist()
    kernels.launch(lambda place: torch.tensor([place]), parts.index(max(parts)))


def histogram_read(kernels: Kernels, x: torch.Tensor) -> None:
    counts = kernels.launch(lambda x: torch.histc(x, 16, -1, 2), x).tolist()
    kernels.launch(lambda place: torch.tensor([place]), counts.index(max(counts)))


def shapes_read(kernels: Kernels, x: torch.Tensor) -> None:
    doubled = kernels.launch(lambda x: 2 * x, x)
    kernels.launch(lambda x, n: x[:n], doubled, x.shape[0] // 2)


def total_at_the_end_of_a_scan(kernels: Kernels, x: torch.Tensor) -> None:
    scanned = kernels.launch(lambda x: (x > -0.5).int().cumsum(0), x)
    kernels.launch(lambda x, n: x[:1] * n, x, int(scanned[-1].item()))


def operators_between(kernels: Kernels, x: torch.Tensor) -> None:
    doubled = kernels.launch(lambda x: 2 * x, x)
    order = torch.argsort(torch.softmax(doubled, 0))
    kernels.launch(lambda x, order: x, doubled[order].half().reshape(8, -1).t().contiguous(), order)
    kernels.launch(lambda x, place: x[:1] * place, x, int(torch.argmax(doubled)))


def returned_as_they_are(kernels: Kernels, x: torch.Tensor) -> list[torch.Tensor]:
    scanned = kernels.launch(lambda x: x.cumsum(0), x)
    with _disable_current_modes():  # the host moves, and reads in every second place
        return [scanned[::2], scanned.reshape(8, -1).t().contiguous()]


def parts_added_up_at_the_end(kernels: Kernels, x: torch.Tensor) -> torch.Tensor:
    parts = kernels.launch(lambda x: x.reshape(-1, 64).sum(1), x)
    with _disable_current_modes():
        return parts.sum() / x.numel()


@pytest.mark.parametrize(
    "forward",
    [
        returned_as_they_are,
        parts_added_up_at_the_end,
        two_launches,
        winners_of_blocks_compared,
        histogram_read,
        shapes_read,
        total_at_the_end_of_a_scan,
        operators_between,
    ],
    ids=lambda forward: forward.__name__,
)
def test_what_kernels_and_operators_choose_is_not_the_hosts(forward: Forward) -> None:
    assert made(forward) == 0


def test_what_cannot_be_kept_ends_what_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dice.kernels.candidate.crossing.MOST_BYTES", 64)
    assert made(place_from_a_code) == 0


@pytest.mark.parametrize(("elements", "size"), [(4096, 512), (64, 8)])
def test_a_number_for_a_warp_is_small(elements: int, size: int) -> None:
    assert small_bytes([torch.zeros(3, dtype=torch.int64), torch.zeros(elements)]) == size
