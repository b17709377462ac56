"""Headers are read as they are meant, and what only one back end finds is asked for there alone."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dice.kernels.records.verdict import Backend

import verification
from corpus import Candidate, corpus, read_candidate
from verification import trick_complaints


def candidate(folder: Path, *headers: str) -> Candidate:
    path = folder / "one.py"
    path.write_text("".join(f"# {line}\n" for line in ("problem: relu", "status: deceptive", *headers)) + "x = 1\n")
    return read_candidate(path)


@pytest.mark.parametrize(
    ("headers", "cpu", "cuda"),
    [
        ([], True, True),
        (["run: host_computation"], True, True),
        (["needs: gpu", "run: host_computation"], False, True),
        (["cpu_run: host_computation"], True, False),
        (["cpu_run: host_computation", "run: identity_kernel"], True, True),
        (["cpu_run: host_computation", "static: result_cache"], True, True),
    ],
)
def test_on_which_back_end_something_is_expected(tmp_path: Path, headers: list[str], cpu: bool, cuda: bool) -> None:
    found = candidate(tmp_path, *headers)
    assert (found.expected_on("cpu"), found.expected_on("cuda")) == (cpu, cuda)


@pytest.mark.parametrize("line", ["needs: cpu", "needs: tpu", "cpu_runs: host_computation", "static:", "a remark"])
def test_an_unknown_word_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(ValueError, match=f"one.py: `(# )?{line}`"):
        candidate(tmp_path, line)


def test_a_remark_in_the_code_is_no_header(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text("# problem: relu\n# status: deceptive\nx = 1\n# y: 2\n")
    assert read_candidate(path).code == "x = 1\n# y: 2\n"


def verdicts(backend: Backend, *found: str) -> Any:
    """Of both protocols, with these findings."""
    one = SimpleNamespace(
        backend=backend,
        status="deceptive",
        functional_status="correct",
        message="",
        deception=[SimpleNamespace(name=name) for name in found],
    )
    return {"strict": one, "paper": one}


def test_a_finding_of_the_cpu_back_end_is_not_asked_of_a_gpu(tmp_path: Path) -> None:
    trick = candidate(tmp_path, "run: identity_kernel", "cpu_run: host_computation")
    assert trick_complaints(trick, verdicts("cpu", "identity_kernel")) == ["not found: host_computation"]
    assert trick_complaints(trick, verdicts("cuda", "identity_kernel")) == []
    assert trick_complaints(trick, verdicts("cuda", "host_computation")) == ["not found: identity_kernel"]


def test_a_gpu_may_give_another_finding_and_another_status(tmp_path: Path) -> None:
    trick = candidate(tmp_path, "run: watched_call", "cuda_run: kernel_never_launched", "cuda_status: wrong_value")
    assert trick_complaints(trick, verdicts("cpu", "watched_call")) == []
    assert trick_complaints(trick, verdicts("cpu", "kernel_never_launched")) == ["not found: watched_call"]
    on_gpu = trick_complaints(trick, verdicts("cuda", "watched_call"))
    assert on_gpu[0] == "not found: kernel_never_launched"
    assert on_gpu[1].endswith("not wrong_value"), "the verdict is `deceptive`"


def test_what_is_not_expected_is_named_and_not_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verification, "verify_all", lambda chosen, *_, **__: {item.name: {} for item in chosen})
    monkeypatch.setattr(verification, "trick_complaints", lambda trick, found: [])
    names = ["medians_by_address", "largest_by_a_heap"]
    monkeypatch.setattr(sys, "argv", ["verification.py", "--backend", "cuda", "--only", *names])
    assert verification.main() == 0
    printed = capsys.readouterr().out
    assert "not expected on cuda, not judged: 1 (medians_by_address)" in printed
    assert "tricks caught as expected: 1 of 1 " in printed


def test_only_tricks_have_findings_that_must_be_given() -> None:
    assert [item.name for item in corpus("honest") if item.findings] == []
    assert [item.name for item in corpus("tricks") if item.needs_gpu and item.cpu_run] == []
