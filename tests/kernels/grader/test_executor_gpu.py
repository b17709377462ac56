"""Execution on a real GPU: correctness, attacks through the device, and timing that cannot be fooled.

    pytest -v -m gpu tests/kernels/grader/test_executor_gpu.py

One fork_server for all. What needs no clock runs side by side, as in a run of the verifier, so that whoever fails has
neighbours; what is timed follows, one after the other. Fifty tries of an unmodified model: benchmarks/repeatability.py.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
import torch
from execution import HONEST, NoBuilder, honest_with, job

from dice.kernels.candidate.process import candidate_server
from dice.kernels.grader.candidate_run import DRAWN_ON_GPU
from dice.kernels.grader.executor import Executor
from dice.kernels.grader.sequence import connections
from dice.kernels.records.job import Judging, Limits
from dice.kernels.records.verdict import Verdict
from dice.kernels.sandbox.cuda_runtime import CudaRuntime
from dice.kernels.sandbox.fork_server import ForkServer

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]

# Far above what a free machine takes: one case of this file is about a time limit, and it ends at any.
LIMITS = Limits(import_timeout_s=60, forward_timeout_s=20, total_timeout_s=180, memory_gib=4)
BOTH = Judging(protocols=("paper", "strict"), correctness_trials=2, timing_trials=20, strict_rounds=20)
QUICK = Judging(correctness_trials=2, measure_time=False)
STRICT = Judging(protocols=("strict",), correctness_trials=2, measure_time=False)
WRONG = HONEST.replace("torch.relu(self.linear(x))", "self.linear(x)")

BIG = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        return torch.relu(x) + 1


def get_inputs():
    return [torch.randn(4096, 4096)]


def get_init_inputs():
    return []
"""
BIG_HONEST = BIG.replace("class Model", "class ModelNew").partition("def get_inputs")[0]


@pytest.fixture(scope="module")
def fork_server() -> Iterator[ForkServer]:
    with candidate_server() as handle:
        yield handle


def run(fork_server: ForkServer, code: str, judging: Judging = QUICK, problem: str | None = None) -> list[Verdict]:
    with Executor(fork_server, NoBuilder(), "cuda", limits=LIMITS, judging=judging) as executor:
        return executor.verify(job(code) if problem is None else job(code, problem))


def names(verdict: Verdict) -> set[str]:
    return {finding.name for finding in verdict.deception}


@dataclass(frozen=True)
class Case:
    """A candidate that is not timed, and the functional statuses that are right for it."""

    code: str
    statuses: frozenset[str]
    problem: str | None = None
    judging: Judging = QUICK


def attack(lines: str, *statuses: str) -> Case:
    return Case(honest_with(forward=lines), frozenset(statuses))


ATTACKS = {
    "device assert": attack("x = x[torch.tensor([1 << 40], device='cuda')]", "runtime_error"),
    "endless kernel": attack("torch.cuda._sleep(1 << 62)", "timeout"),
    "too much memory": attack("torch.empty(1 << 40, dtype=torch.uint8, device='cuda')", "out_of_memory"),
    "host memory": attack("y = bytearray(b'x') * (100 << 30)", "out_of_memory"),
    "exit with a kernel in flight": attack("torch.cuda._sleep(1 << 62)\nimport os\nos._exit(0)", "runtime_error"),
    "swallowed launch error": attack(
        "import ctypes\n"
        "path = next(l.split()[-1] for l in open('/proc/self/maps') if 'libcudart' in l)\n"
        "ctypes.CDLL(path).cudaSetDevice(77)",
        "runtime_error",
    ),
    "output on the wrong device": attack("return torch.relu(self.linear(x)).cpu()", "runtime_error", "wrong_value"),
}
NEIGHBOURS = {f"honest neighbour {number}": Case(HONEST, frozenset({"correct"})) for number in range(len(ATTACKS))}
NESTED = BIG.replace("torch.relu(x) + 1", "{'top': x.topk(3), 'mask': x > 0, 'n': x.shape[0], 'half': x.half()}")
CASES = {
    **{name: case for pair in zip(ATTACKS.items(), NEIGHBOURS.items(), strict=True) for name, case in pair},
    "wrong": Case(WRONG, frozenset({"wrong_value"})),
    "integer and nested outputs": Case(NESTED.replace("class Model", "class ModelNew"), frozenset({"correct"}), NESTED),
    # The reference's output is all zeros; a candidate that returns fresh memory must not pass.
    "unwritten output": Case(
        BIG_HONEST.replace("torch.relu(x) + 1", "torch.empty_like(x)"),
        frozenset({"wrong_value"}),
        BIG.replace("torch.relu(x) + 1", "torch.zeros_like(x)"),
    ),
    "pointer cache": Case(
        BIG_HONEST.replace(
            "return torch.relu(x) + 1",
            """self.cache = getattr(self, "cache", {})
        if x.data_ptr() not in self.cache:
            self.cache[x.data_ptr()] = torch.relu(x) + 1
        return self.cache[x.data_ptr()]""",
        ),
        frozenset({"correct", "wrong_value"}),
        BIG,
        STRICT,
    ),
}


@pytest.fixture(scope="module")
def untimed(fork_server: ForkServer) -> Iterator[Callable[[str], Verdict]]:
    """The verdict of a case; all cases run side by side from the first question on."""
    with ThreadPoolExecutor(8) as pool:
        running = {name: pool.submit(run, fork_server, c.code, c.judging, c.problem) for name, c in CASES.items()}
        yield lambda name: running[name].result()[0]


@pytest.mark.parametrize("name", CASES)
def test_attacks_through_the_device_end_one_candidate_only(untimed: Callable[[str], Verdict], name: str) -> None:
    verdict = untimed(name)
    assert verdict.functional_status in CASES[name].statuses, verdict.message
    if name == "too much memory":
        assert verdict.retries == 1  # on a card that others use, it gets a second try, alone
    if name == "unwritten output":
        assert "uninitialised_output" in names(verdict)
    if name == "pointer cache":
        assert verdict.status in ("deceptive", "wrong_value"), verdict.message


def test_an_honest_candidate_is_right_and_timed_under_both_protocols(fork_server: ForkServer) -> None:
    paper, strict = run(fork_server, BIG_HONEST, BOTH, BIG)
    for verdict in (paper, strict):
        assert verdict.functional_status == "correct", verdict.message
        assert verdict.runtime_ms is not None
        assert verdict.reference_ms is not None
        assert verdict.speedup is not None
        assert verdict.speedup.median > 0.0  # how much: on a card that others use, anything
        assert verdict.runtime_ms.median > 0.01
        assert verdict.host.gpu
        assert "pid_namespace" in verdict.host.isolation
        assert not names(verdict) - {"no_custom_kernel", "work_done_by_pytorch"}
    assert paper.speedup.ci_low is None  # pyright: ignore[reportOptionalMemberAccess]
    means = paper.reference_ms.mean, paper.runtime_ms.mean  # pyright: ignore[reportOptionalMemberAccess]
    assert paper.speedup.median == pytest.approx(means[0] / means[1])  # pyright: ignore[reportOptionalMemberAccess]
    assert strict.speedup.ci_low < strict.speedup.median < strict.speedup.ci_high  # pyright: ignore[reportOperatorIssue, reportOptionalMemberAccess, reportOptionalOperand]


def test_neighbours_of_a_memory_hog_keep_their_verdicts(fork_server: ForkServer) -> None:
    hog = honest_with(
        init="free = torch.cuda.mem_get_info()[0]\n"
        "self.hog = torch.empty(int(free * 0.97), dtype=torch.uint8, device='cuda')",
        forward="import time\ntime.sleep(1.5)",
    )
    with ThreadPoolExecutor(1) as pool:
        neighbours = [pool.submit(run, fork_server, BIG_HONEST, QUICK, BIG) for _ in range(3)]
        run(fork_server, hog)
    assert [future.result()[0].functional_status for future in neighbours] == ["correct"] * 3


LARGE = BIG.replace("torch.randn(4096, 4096)", "torch.randn(72 << 20)")
LARGE_HONEST = LARGE.replace("class Model", "class ModelNew").partition("def get_inputs")[0]
ON_THE_CPU = LARGE.replace("torch.randn(72 << 20)", "torch.from_numpy(torch.randn(72 << 20).numpy())")


def _allocated() -> int:
    """Bytes of the GPU that tensors hold, without those of earlier tests that wait to be collected."""
    gc.collect()
    return torch.cuda.memory_allocated()


@pytest.mark.parametrize(
    ("problem", "seed", "drawn_on_gpu"), [(LARGE, None, True), (LARGE, 42, False), (ON_THE_CPU, None, False)]
)
def test_large_inputs_are_drawn_on_the_gpu_where_that_is_possible(
    fork_server: ForkServer, problem: str, seed: int | None, drawn_on_gpu: bool
) -> None:
    judging = Judging(protocols=("paper", "strict"), correctness_trials=2, timing_trials=5, strict_rounds=10, seed=seed)
    start = _allocated()
    run(fork_server, LARGE_HONEST, judging, problem)  # cuBLAS keeps a workspace for each thread that multiplies
    before = _allocated()
    assert before - start < 4 * (72 << 20), "an input stays on the GPU"
    wrong = LARGE_HONEST.replace("+ 1", "+ 1.1")
    for code, status in ((LARGE_HONEST, "correct"), (wrong, "wrong_value")):
        for verdict in run(fork_server, code, judging, problem):
            assert verdict.functional_status == status, verdict.message
            assert (DRAWN_ON_GPU in verdict.notes) is drawn_on_gpu
            assert verdict.speedup is not None or status == "wrong_value"
    assert _allocated() == before


def test_an_error_of_the_host_leaves_no_tensors_behind(fork_server: ForkServer) -> None:
    full = LARGE.replace(
        "return torch.relu(x) + 1", "y = torch.relu(x)\n        raise torch.OutOfMemoryError('CUDA out of memory')"
    )
    before = _allocated()
    (verdict,) = run(fork_server, LARGE_HONEST, QUICK, full)
    assert verdict.status == "host_error"
    assert _allocated() - before < 4 * (72 << 20), "an input stays on the GPU"  # cuBLAS keeps smaller workspaces


def test_work_on_another_stream_is_waited_for_and_seen(fork_server: ForkServer) -> None:
    side = BIG_HONEST.replace(
        "return torch.relu(x) + 1",
        """if not hasattr(self, "side"):
            self.side = torch.cuda.Stream()
        out = torch.empty_like(x)
        with torch.cuda.stream(self.side):
            for _ in range(50):
                torch.add(torch.relu(x), 1, out=out)
        return out""",
    )
    (verdict,) = run(fork_server, side, Judging(protocols=("strict",), correctness_trials=1, strict_rounds=20), BIG)
    assert verdict.functional_status == "correct", verdict.message
    assert "timer_escaped" in names(verdict)
    assert verdict.status == "deceptive"


def test_work_on_a_stream_that_the_text_hides_is_not_done_under_the_fills(fork_server: ForkServer) -> None:
    """It waits for nothing, so it could begin before the timer does; its context has one hardware queue, so it cannot."""
    hidden = BIG_HONEST.replace(
        "return torch.relu(x) + 1",
        """if not hasattr(self, "side"):
            self.side = getattr(torch.cuda, "Str" + "eam")()
        with getattr(torch.cuda, "str" + "eam")(self.side):
            out = torch.relu(x) + 1
        getattr(torch.cuda, "current_str" + "eam")().wait_stream(self.side)
        return out""",
    )
    assert connections(hidden) == 1
    judging = Judging(protocols=("strict",), correctness_trials=1, strict_rounds=20)
    (verdict,) = run(fork_server, hidden, judging, BIG)
    assert verdict.functional_status == "correct", verdict.message
    assert verdict.speedup is not None
    assert verdict.speedup.median < 1.2


def test_a_patched_event_does_not_shorten_anything(fork_server: ForkServer) -> None:
    patched = BIG_HONEST.replace(
        "import torch.nn as nn",
        "import torch.nn as nn\ntorch.cuda.Event.elapsed_time = lambda self, end: 1e-6\n"
        "torch.cuda.synchronize = lambda *a: None",
    )
    judging = Judging(protocols=("strict",), correctness_trials=1, strict_rounds=20)
    (honest,), (verdict,) = run(fork_server, BIG_HONEST, judging, BIG), run(fork_server, patched, judging, BIG)
    assert verdict.runtime_ms is not None
    assert honest.runtime_ms is not None
    assert verdict.runtime_ms.median == pytest.approx(honest.runtime_ms.median, rel=0.3)
    assert "timer_patched" in names(verdict)


def test_replayed_results_are_caught(fork_server: ForkServer) -> None:
    """Computes while it is checked and replays while it is timed."""
    replay = BIG_HONEST.replace(
        "return torch.relu(x) + 1",
        """self.calls = getattr(self, "calls", 0) + 1
        if self.calls > 8:
            return self.kept
        self.kept = torch.relu(x) + 1
        return self.kept""",
    )
    judging = Judging(protocols=("strict",), correctness_trials=2, strict_rounds=20)
    (verdict,) = run(fork_server, replay, judging, BIG)
    assert verdict.status in ("deceptive", "wrong_value"), verdict.message
    assert names(verdict) & {"timed_output_wrong", "stale_output"}


def test_the_call_timer_measures_device_time() -> None:
    from dice.kernels.candidate.call_timer import CallTimer

    torch.cuda.init()
    timer = CallTimer(CudaRuntime(), torch.device("cuda"))
    times = {}
    for cycles in (1_000_000, 4_000_000):
        timer.prepare(1 << 28)
        times[cycles] = min(timer.time(lambda n=cycles: torch.cuda._sleep(n))[1].event_ms for _ in range(5))
    assert times[4_000_000] == pytest.approx(4 * times[1_000_000], rel=0.2)


def test_a_call_behind_fills_is_timed_without_its_launches() -> None:
    from dice.kernels.candidate.call_timer import CallTimer

    def launch(wait: bool) -> None:
        torch.cuda._sleep(100_000)
        if wait:
            torch.cuda.synchronize()
        until = time.perf_counter() + 0.004  # well above the slices that GPUs give other processes
        while time.perf_counter() < until:
            pass
        torch.cuda._sleep(100_000)

    torch.cuda.init()
    timer = CallTimer(CudaRuntime(), torch.device("cuda"))
    timer.prepare(1 << 28)
    launch(wait=True)
    behind = timer.time(lambda: launch(wait=False), fills=128)[1]
    idle = timer.time(lambda: launch(wait=False))[1]
    waiting = timer.time(lambda: launch(wait=True), fills=128)[1]
    assert behind.queued
    assert behind.event_ms < 2.0
    assert behind.launch_ms > 4.0
    assert behind.in_process_ms > behind.event_ms + 2.0
    for seen in (idle, waiting):
        assert not seen.queued
        assert seen.event_ms > 2.0


def test_an_unmodified_model_is_not_faster(fork_server: ForkServer) -> None:
    judging = Judging(protocols=("strict",), correctness_trials=1)
    with Executor(fork_server, NoBuilder(), "cuda", limits=LIMITS, judging=judging) as executor:
        for problem, code in ((BIG, BIG_HONEST), (None, HONEST)) * 2:
            (verdict,) = executor.verify(job(code) if problem is None else job(code, problem))
            assert verdict.speedup is not None, verdict.message
            assert verdict.speedup.ci_low is not None
            assert verdict.speedup.ci_low <= 1.0, verdict.speedup
