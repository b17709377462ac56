"""A candidate of one stream gets a CUDA context with one hardware queue; what ends it in an experiment is told."""

import contextlib
from functools import partial
from types import SimpleNamespace
from typing import cast

import pytest

from dice.kernels.grader import sequence
from dice.kernels.grader.candidate_run import CandidateRun
from dice.kernels.grader.sequence import connections
from dice.kernels.sandbox.isolation import SandboxSpec, environment
from dice.kernels.sandbox.session import CandidateFailure

ONE_STREAM = "k<<<g, b, 0, at::cuda::getCurrentCUDAStream()>>>(x); // threadIdx.x, __syncthreads(), cudaStream_t stream"


@pytest.mark.parametrize(
    "code",
    [
        "cudaStreamCreate(&s);",
        "cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);",
        "auto s = at::cuda::getStreamFromPool();",
        "side = torch.cuda.Stream()",
        "with torch.cuda.stream(side):",
        "torch.cuda.CUDAGraph()",
        "cudaStreamBeginCapture(s, m);",
        "std::thread (work)",
        "threading.Thread(target=work)",
    ],
)
def test_whoever_works_on_several_streams_keeps_the_default(code):
    assert connections(code) is None
    assert connections(ONE_STREAM) == 1


@pytest.mark.parametrize("queues", [None, 1])
def test_the_environment_says_so(queues, monkeypatch):
    monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
    spec = SandboxSpec(
        scratch_bytes=1, file_bytes=1, processes=1, data_bytes=None, cuda_visible_devices="0",
        cuda_connections=queues, threads=1,
    )  # fmt: skip
    expected = None if queues is None else "1"
    assert environment(spec, "/scratch").get("CUDA_DEVICE_MAX_CONNECTIONS") == expected


@pytest.mark.parametrize("drawn", [False, True])
def test_an_end_in_an_experiment_is_a_note_or_where_the_problem_draws_such_values_a_failure(drawn, monkeypatch):
    sent = []

    def experiment_odd(_):
        assert sent == [("inputs", "those of the last trial")], "a new process has none"
        raise CandidateFailure("runtime_error", "no data")

    monkeypatch.setattr(sequence, "_EXPERIMENTS", (experiment_odd,))
    monkeypatch.setattr(sequence, "_DRAWN", (experiment_odd,) if drawn else ())
    record = SimpleNamespace(notes=[], failures={}, on_gpu=False)
    run = SimpleNamespace(
        last=SimpleNamespace(inputs="those of the last trial"), evidence=SimpleNamespace(reached="compare"),
        place=SimpleNamespace(backend="cpu"), record=record,
        advances=False, gpu=contextlib.nullcontext, revive=lambda: None, end=lambda: None,
        send=lambda *request: sent.append(request),
    )  # fmt: skip
    run.fail_under = partial(CandidateRun.fail_under, cast(CandidateRun, run))
    sequence._experiments(cast(CandidateRun, run))
    assert record.notes == ([] if drawn else ["no result of the experiment odd: runtime_error, no data"])
    assert record.failures == ({"strict": ("runtime_error", "no data")} if drawn else {})


def test_what_looking_for_races_ends_is_asked_nothing_afterwards(monkeypatch):
    alive, seen = [True], []

    def look_for_races(_):
        alive[0] = False

    def observe(_):
        assert alive[0], "a dead process is asked"
        seen.append("observed")

    monkeypatch.setattr(sequence, "try_inputs", lambda _: None)
    monkeypatch.setattr(sequence, "look_for_races", look_for_races)
    monkeypatch.setattr(sequence, "observe", observe)
    monkeypatch.setattr(
        sequence, "explain", lambda _: seen.append("told whether there is a race" if not alive[0] else "")
    )
    place = SimpleNamespace(backend="cpu", judging=SimpleNamespace(explain=True))
    sequence._try_trials(cast(CandidateRun, SimpleNamespace(place=place, standing=lambda: True)))
    assert seen == ["observed", "told whether there is a race"]
