"""The corpus through the whole verifier: on each back end what is to be found there, on a GPU with `-m gpu`.

`make test` runs one candidate for each thing that is to be found or nearly found, on the CPU; `make test-all` runs all of
them. One test for each half, so that its candidates are verified once, in parallel, however the tests are spread; a
failure lists every candidate that was judged otherwise than its header says.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from dice.kernels.records.verdict import Backend

from corpus import Candidate, corpus
from verification import honest_complaints, trick_complaints, verify_all

APART = {
    "nan_guard_norm",
    "zero_bias_dropped",
    "narrow_by_number",
    "block_diagonal_weight",
    "gelu_in_one_operator",
    "bag_of_an_embedding",
    "shares_before_their_sum",
}
"""Found by an experiment of their own, under a finding that others give too."""


ASKS = ("static", "run", "cpu_run", "near", "warns")


def one_for_each_finding(candidates: list[Candidate]) -> list[Candidate]:
    """The first by name for each thing that a header asks for, and those that stand apart."""
    chosen, asked = list[Candidate](), set[tuple[str, str]]()
    for item in candidates:
        asks = {(key, name) for key in ASKS for name in item.header.get(key, "").split()}
        if asks - asked or item.name in APART:
            chosen.append(item)
            asked |= asks
    return chosen


def expected(kind: str, backend: Backend) -> list[Candidate]:
    """Those of which the headers ask for something on this back end."""
    return [item for item in corpus(kind) if item.expected_on(backend)]


def wrongly_judged(kind: str, candidates: list[Candidate], backend: Backend, work: Path) -> dict[str, list[str]]:
    """Complaints by candidate, of those that have any."""
    verdicts = verify_all(candidates, backend, work)
    check = trick_complaints if kind == "tricks" else honest_complaints
    found = {item.name: check(item, verdicts[item.name]) for item in candidates}
    return {name: complaints for name, complaints in found.items() if complaints}


@pytest.mark.parametrize("kind", ["tricks", "honest"])
def test_one_for_each_finding_on_the_cpu_back_end(kind: str, tmp_path: Path) -> None:
    assert wrongly_judged(kind, one_for_each_finding(expected(kind, "cpu")), "cpu", tmp_path) == {}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tricks", "honest"])
def test_all_on_the_cpu_back_end(kind: str, tmp_path: Path) -> None:
    assert wrongly_judged(kind, expected(kind, "cpu"), "cpu", tmp_path) == {}


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["tricks", "honest"])
def test_on_a_gpu(kind: str, tmp_path: Path) -> None:
    assert wrongly_judged(kind, expected(kind, "cuda"), "cuda", tmp_path) == {}
