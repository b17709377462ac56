"""The builds that a candidate may request, without a candidate and without a compiler."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dice.kernels.grader.builds import MAX_EXTENSIONS, Builds
from dice.kernels.grader.place import Place
from dice.kernels.grader.record import Record
from dice.kernels.records.evidence import RunEvidence
from dice.kernels.records.extension import BuildResult, BuildStatus, ExtensionRequest
from dice.kernels.records.job import Limits
from dice.kernels.sandbox.channel import ChannelGarbage
from dice.kernels.sandbox.session import CandidateFailure

REQUEST = {"request": ExtensionRequest(kind="load_inline", name="e", cuda_sources=("int f();",)).model_dump()}


def answer(status: BuildStatus, message: str = "", path: Path | None = None) -> BuildResult:
    digest = None if path is None else hashlib.sha256(path.read_bytes()).hexdigest()
    named = None if path is None else str(path)
    return BuildResult(status=status, key="k", route="stock", message=message, path=named, object_sha256=digest)


def builds_of(result: BuildResult, slot: Any = None, known: bool = False) -> tuple[Builds, Record]:
    """Builds by a builder that answers every request with `result`; `known`: without building it."""
    evidence = RunEvidence(backend="cpu", reached="import")
    fields: dict[str, Any] = dict.fromkeys(("fork_server", "device", "spec", "judging"))
    builder: Any = SimpleNamespace(known=lambda request: result if known else None, build=lambda request: result)
    place = Place(**fields, builder=builder, backend="cpu", slot=slot, limits=Limits())
    record = Record()
    record.evidence = evidence
    builds = Builds(place, record, evidence)
    builds.begin(again=False)
    return builds, record


def test_every_process_of_a_candidate_has_the_same_limit_of_builds() -> None:
    builds, record = builds_of(answer("compile_error", message="no"))
    for again in (False, True):
        builds.begin(again)
        for _ in range(MAX_EXTENSIONS):
            builds.answer(REQUEST)
        with pytest.raises(CandidateFailure, match="over 64") as raised:
            builds.answer(REQUEST)
        assert raised.value.status == "timeout"
    assert len(record.builds) == len(builds.requests) == MAX_EXTENSIONS, "those of the first process"


def test_what_is_no_request() -> None:
    builds, _ = builds_of(answer("compile_error"))
    with pytest.raises(ChannelGarbage, match="faults"):
        builds.answer({"request": {"name": 3}})


def test_a_built_object_is_handed_over_as_a_copy(tmp_path: Path) -> None:
    path = tmp_path / "e.so"
    path.write_bytes(b"no shared object")
    builds, record = builds_of(answer("built", path=path))
    _, fd = builds.answer(REQUEST)
    assert fd is not None
    assert os.pread(fd, 100, 0) == path.read_bytes()
    _, again = builds.answer(REQUEST)
    assert again is not None
    assert os.path.sameopenfile(fd, again), "one copy of each object"
    os.close(fd)
    os.close(again)
    builds.close()
    assert record.evidence is not None
    assert record.evidence.extensions[0].imports is None


@pytest.mark.parametrize(("known", "steps"), [(False, ["lent", "taken back"]), (True, [])])
def test_the_gpu_is_lent_while_something_is_built(known: bool, steps: list[str]) -> None:
    lent: list[str] = []

    @contextmanager
    def lend() -> Iterator[None]:
        lent.append("lent")
        yield
        lent.append("taken back")

    builds, record = builds_of(answer("compile_error"), SimpleNamespace(lent=lend), known)
    builds.answer(REQUEST)
    assert lent == steps
    assert len(record.builds) == 1


def test_the_wait_for_the_gpu_after_a_build_is_no_time_of_the_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    @contextmanager
    def lend() -> Iterator[None]:
        nonlocal now
        yield
        now += 10 * Limits().build_timeout_s  # others time their kernels

    monkeypatch.setattr("time.monotonic", lambda: now)
    builds, record = builds_of(answer("compile_error"), SimpleNamespace(lent=lend))
    for _ in range(2):
        builds.answer(REQUEST)
    assert record.phase_seconds["build"] == 0.0


@pytest.mark.parametrize(
    ("source", "keeps"),
    [
        ("__global__ void k(float* y) { float local = 1.f; *y = local; }", False),
        ("__constant__ int sizes[2] = {1, 2}; __device__ float kept[64];", True),
        ("int f() { static at::Tensor room; return 0; }", True),
    ],
)
def test_variables_that_keep_their_value(source: str, keeps: bool) -> None:
    builds, _ = builds_of(answer("compile_error"))
    builds.requests.append(
        ExtensionRequest(kind="load_inline", name="e", cpp_sources=("int f();",), cuda_sources=(source,))
    )
    assert builds.keep_variables() is keeps
