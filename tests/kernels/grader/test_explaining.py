"""What the author of one kernel is told of the work and the card."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch
from execution import HONEST, PROBLEM, NoBuilder, honest_with, job

from dice.kernels.grader.executor import Executor
from dice.kernels.grader.explaining import card_of, flop_of, processor_of
from dice.kernels.grader.reference import Reference
from dice.kernels.records.explanation import Work
from dice.kernels.records.job import Judging
from dice.kernels.sandbox.fork_server import ForkServer

H100 = SimpleNamespace(
    major=9, minor=0, multi_processor_count=132, memory_clock_rate=2_619_000, memory_bus_width=5120, clock_rate=1_980_000,
    max_threads_per_multi_processor=2048, regs_per_multiprocessor=65536, shared_memory_per_multiprocessor=233472,
)  # fmt: skip


def test_the_peaks_of_a_card() -> None:
    """NVIDIA's data sheet of the H100 SXM: 3.35 TB/s, 67 TFLOP/s in fp32."""
    card = card_of(H100)
    assert card.bytes_per_s == pytest.approx(3.35e12, rel=0.01)
    assert card.flop_per_s == pytest.approx(67e12, rel=0.01)
    unknown = card_of(SimpleNamespace(major=99, minor=0, multi_processor_count=1))
    assert (unknown.bytes_per_s, unknown.flop_per_s) == (None, None)


def test_the_limits_of_a_multiprocessor() -> None:
    processor = processor_of(H100)
    assert (processor.blocks, processor.reserved_bytes) == (32, 1024)
    old = SimpleNamespace(**{**vars(H100), "major": 7, "minor": 5})
    assert (processor_of(old).blocks, processor_of(old).reserved_bytes) == (16, 0)


@pytest.fixture(scope="module")
def executor(fork_server: ForkServer) -> Iterator[Executor]:
    judging = Judging(protocols=("paper", "strict"), correctness_trials=1, explain=True)
    with Executor(fork_server, NoBuilder(), "cpu", judging=judging) as value:
        yield value


def test_a_wrong_kernel_is_located_under_each_protocol_that_it_fails(executor: Executor) -> None:
    code = honest_with(forward="y = torch.relu(self.linear(x))\ny[3:, 7] += 3e-3\nreturn y")
    paper, strict = executor.verify(job(code))
    assert paper.explanation is not None
    assert strict.explanation is not None
    assert paper.explanation.mismatch is None
    mismatch = strict.explanation.mismatch
    assert mismatch is not None
    assert (mismatch.shape, mismatch.wrong, mismatch.first, mismatch.highest) == ([16, 64], 13, [3, 7], [15, 7])
    # inputs 16 x 64, weights 64 x 64 and 64, outputs 16 x 64, in fp32; one product of 16 x 64 by 64 x 64
    work = Work(bytes=4 * (16 * 64 + 64 * 64 + 64 + 16 * 64), flop=2 * 16 * 64 * 64)
    assert paper.explanation.work == strict.explanation.work == work


def test_a_program_that_needs_its_data_has_no_count() -> None:
    code = PROBLEM.replace("return torch.relu", "return x * float(x.sum()) if x.sum() > 0 else torch.relu")
    reference = Reference("problem", code, torch.device("cpu"))
    assert flop_of(reference, 1, reference.inputs(1)) is None
    plain = Reference("problem", PROBLEM, torch.device("cpu"))
    assert flop_of(plain, 1, plain.inputs(1)) == 2 * 16 * 64 * 64


def test_nothing_is_explained_unless_asked(fork_server: ForkServer) -> None:
    quiet = Judging(protocols=("paper",), correctness_trials=1)
    with Executor(fork_server, NoBuilder(), "cpu", judging=quiet) as executor:
        (verdict,) = executor.verify(job(HONEST.replace("torch.relu", "torch.tanh")))
    assert verdict.status == "wrong_value"
    assert verdict.explanation is None
