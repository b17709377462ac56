"""Memory of a GPU that two processes share."""

from __future__ import annotations

import multiprocessing
import os
import socket

import pytest
import torch

from dice.kernels.sandbox import gpu_buffer
from dice.kernels.sandbox.cuda_runtime import CudaError
from dice.kernels.sandbox.gpu_buffer import GpuBuffer

pytestmark = pytest.mark.gpu

SIZE = (64 << 20) + 12  # no whole number of pages


def _other_side(sock: socket.socket) -> None:
    _, (fd,), _, _ = socket.recv_fds(sock, 1, 1)
    torch.cuda.synchronize()
    buffer = GpuBuffer.attach(fd, SIZE)
    os.close(fd)
    assert int(buffer.tensor[SIZE - 1]) == 9
    assert int(buffer.tensor.sum()) == 9
    buffer.tensor.fill_(3)
    buffer.close()
    sock.send(b"x")


def test_what_one_process_writes_the_other_reads() -> None:
    assert gpu_buffer.possible()
    here, there = socket.socketpair()
    process = multiprocessing.get_context("spawn").Process(target=_other_side, args=(there,))
    with gpu_buffer.lent(SIZE) as (buffer, fd):
        buffer.tensor[SIZE - 1] = 9
        buffer.settle()
        process.start()
        socket.send_fds(here, [b"x"], [fd])
        there.close()
        assert here.recv(1) == b"x"
        assert int(buffer.tensor.to(torch.int64).sum()) == 3 * SIZE
    process.join()
    assert process.exitcode == 0


def test_buffers_begin_as_zeros_and_leave_nothing_behind() -> None:
    torch.zeros(1, device="cuda").sum().item()  # what is loaded once
    descriptors, free = os.listdir("/proc/self/fd"), torch.cuda.mem_get_info()[0]
    for _ in range(20):
        with gpu_buffer.lent(SIZE) as (buffer, _fd):
            assert not buffer.tensor.any()
            buffer.tensor.fill_(255)
    torch.cuda.empty_cache()
    assert len(os.listdir("/proc/self/fd")) == len(descriptors)
    assert free - torch.cuda.mem_get_info()[0] < 10 * SIZE  # of 20; others may use the card, too


def test_zeros_are_there_before_the_other_process_can_write() -> None:
    torch.cuda._sleep(200_000_000)  # what this process has begun before, a tenth of a second
    with gpu_buffer.lent(SIZE):
        assert torch.cuda.current_stream().query()


def test_a_full_card_is_pytorchs_error_and_a_wrong_descriptor_the_drivers() -> None:
    with pytest.raises(torch.OutOfMemoryError), gpu_buffer.lent(1 << 45):
        pass
    with open(os.devnull) as other, pytest.raises(CudaError):
        GpuBuffer.attach(other.fileno(), 1)
    assert torch.ones(3, device="cuda").sum().item() == 3.0
