"""The seed of the generators that a process uses."""

from __future__ import annotations

import pytest
import torch

from dice.kernels.sandbox.seeding import seed_generators


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_numbers_are_those_of_pytorchs_own_seed(device: str) -> None:
    torch.manual_seed(11)
    expected = torch.randn(5)
    seed_generators(11, torch.device(device))
    assert torch.equal(torch.randn(5), expected)
    seed_generators(12, torch.device(device))
    assert not torch.equal(torch.randn(5), expected)


def test_a_function_in_the_place_of_pytorchs_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((torch, "manual_seed"), (torch.random, "manual_seed")):
        monkeypatch.setattr(module, name, lambda _: pytest.fail("called"))
    for device in ("cpu", "cuda"):
        seed_generators(3, torch.device(device))


@pytest.mark.gpu
def test_the_generator_of_a_gpu_is_seeded_where_the_process_computes_there() -> None:
    def drawn(device: str) -> torch.Tensor:
        seed_generators(7, torch.device(device))
        return torch.randn(5, device="cuda")

    first = drawn("cuda")
    assert torch.equal(drawn("cuda"), first)
    assert not torch.equal(drawn("cpu"), first)  # goes on
