"""Where a problem's inputs are drawn, and work on large values piece by piece: no GPU is needed to see either."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from dice.errors import DiceError
from dice.kernels import compare
from dice.kernels.grader.candidate_run import DRAWN_ON_GPU, CandidateRun
from dice.kernels.grader.observation import fingerprint, identical
from dice.kernels.grader.reference import Reference, Seeds
from dice.kernels.grader.without_kernels import _nearly_equal
from dice.kernels.records.job import Judging

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, *arguments):
        return arguments[0]

def get_inputs():
    where = torch.empty(0).device.type
    BODY
    return [where]

def get_init_inputs():
    return []
"""
META = torch.device("meta")
"""In the place of a GPU: what is made under it is not made on the CPU."""


class Slot:
    """Counts how often the GPU was lent."""

    lent_times = 0

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        self.lent_times += 1
        yield


def drawn(body: str, input_bytes: int, seed: int | None, slot: Slot | None) -> tuple[list[Any], list[str]]:
    """Two draws of a run's, and its notes."""
    reference = Reference("p", PROBLEM.replace("BODY", body), torch.device("cpu"))
    reference.__dict__["input_bytes"] = input_bytes
    limits = SimpleNamespace(total_timeout_s=60.0)
    place: Any = SimpleNamespace(
        slot=slot,
        gpu_lent=slot.lent if slot else contextlib.nullcontext,
        device=META,
        judging=Judging(seed=seed),
        limits=limits,
        backend="cuda",
        builder=None,
    )
    run = CandidateRun(place, reference, Seeds.draw(seed, 1))
    return [run.draw_inputs(n)[0] for n in range(2)], run.record.notes


@pytest.mark.parametrize(
    ("input_bytes", "seed", "has_gpu", "device", "lent"),
    [
        (1 << 30, None, True, "meta", 0),
        (1 << 20, None, True, "cpu", 0),
        (1 << 30, 42, True, "cpu", 2),
        (1 << 30, None, False, "cpu", 0),
    ],
)
def test_large_secret_inputs_are_drawn_on_the_gpu(
    input_bytes: int, seed: int | None, has_gpu: bool, device: str, lent: int
) -> None:
    slot = Slot()
    found, notes = drawn("pass", input_bytes, seed, slot if has_gpu else None)
    assert found == [device] * 2
    assert slot.lent_times == lent
    assert notes == ([DRAWN_ON_GPU] if device == "meta" else [])


def test_inputs_that_need_the_cpu_are_drawn_there() -> None:
    slot = Slot()
    assert drawn("torch.ones(2).numpy()", 1 << 30, None, slot) == (["cpu"] * 2, [])
    assert slot.lent_times == 2


def test_inputs_that_cannot_be_drawn_at_all_are_the_problems_fault() -> None:
    with pytest.raises(DiceError, match="get_inputs fails"):
        drawn("torch.ones(2)[9]", 1 << 30, None, Slot())


@pytest.mark.parametrize("place", [0, 6, 63, 64, 199])
def test_pieces_tell_as_much_as_the_whole(monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    base = torch.linspace(1, 9, 200).reshape(20, 10)
    other = base.clone()
    other.view(-1)[place] += 1
    for piece in (1 << 13, 64, 7):
        monkeypatch.setitem(compare.CHUNK, "cpu", piece)
        assert identical([base], [base.clone()])
        assert not identical([base], [other])
        assert _nearly_equal([base], [base + 1e-6])
        assert not _nearly_equal([base], [other])
        assert not _nearly_equal([base.t()], [other.t()])
        assert fingerprint(base) == fingerprint(base.clone()) != fingerprint(other)
