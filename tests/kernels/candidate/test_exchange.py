"""The device and the shared memory of a candidate's process, used from this one."""

from __future__ import annotations

import os

import pytest
import torch

from dice.kernels.candidate.accelerator import Accelerator
from dice.kernels.candidate.exchange import Exchange
from dice.kernels.sandbox import values
from dice.kernels.sandbox.shared_memory import SharedBuffer


@pytest.fixture
def accelerator(monkeypatch: pytest.MonkeyPatch) -> Accelerator:
    """That of a build ahead: nothing but the CPU, and what it replaces is put back."""
    monkeypatch.setattr(torch.cuda, "is_available", torch.cuda.is_available)
    monkeypatch.setattr(torch.cuda, "device_count", torch.cuda.device_count)
    return Accelerator("cpu", "cuda")


def test_a_build_ahead_says_that_there_is_a_gpu(accelerator: Accelerator) -> None:
    assert torch.cuda.is_available()
    assert accelerator.cuda is None
    accelerator.settle()  # and settles nothing


def test_values_arrive_in_memory_of_the_process_and_go_back(accelerator: Accelerator) -> None:
    exchange = Exchange(accelerator)
    header, tensors, size = values.lay_out([torch.arange(4.0), {"n": 3}])
    sent = SharedBuffer.create(size)
    values.write(tensors, header, sent.tensor)
    received = exchange.receive(header, [sent.fd])
    sent.tensor.zero_()
    assert received[0].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert received[1] == {"n": 3}

    offer = exchange.offer(received)
    fetched = SharedBuffer.create(offer["bytes"])
    exchange.hand_over(fetched.fd, offer["bytes"])
    again = values.read(offer["header"], fetched.tensor, lambda view, device: view.clone())
    assert again[0].equal(received[0])
    sent.close()
    fetched.close()


def test_a_buffer_stays_mapped_until_another_comes(accelerator: Accelerator) -> None:
    exchange = Exchange(accelerator)
    header, tensors, size = values.lay_out([torch.ones(3)])
    before = len(os.listdir("/proc/self/fd"))
    for number in range(3):
        sent = SharedBuffer.create(size)
        values.write([tensor * number for tensor in tensors], header, sent.tensor)
        for _ in range(2):
            assert exchange.receive(header, [sent.fd])[0].tolist() == [number] * 3
        sent.close()
    assert len(os.listdir("/proc/self/fd")) <= before + 2, (
        "the last buffer's descriptor, and the one that its mmap keeps"
    )


def test_a_value_without_tensors_needs_no_buffer(accelerator: Accelerator) -> None:
    header, _, _ = values.lay_out([1, "a"])
    assert Exchange(accelerator).receive(header, []) == [1, "a"]
