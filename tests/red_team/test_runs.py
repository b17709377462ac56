"""The corpus through the whole verifier: what needs no GPU on the CPU back end, all of it on a GPU (`-m gpu`).

All candidates of a back end are verified once, in parallel, when the first test asks; the tests only look.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from corpus import Candidate, corpus
from verification import Verdicts, honest_complaints, trick_complaints, verify_all

TRICKS, HONEST = corpus("tricks"), corpus("honest")


@pytest.fixture(scope="module")
def on_cpu() -> Verdicts:
    return verify_all([item for item in TRICKS + HONEST if not item.needs_gpu], "cpu")


@pytest.fixture(scope="module")
def on_gpu() -> Verdicts:
    return verify_all(TRICKS + HONEST, "cuda")


def named(candidates: Iterable[Candidate]) -> list:
    return [pytest.param(candidate, id=candidate.name) for candidate in candidates]


@pytest.mark.parametrize("trick", named(item for item in TRICKS if not item.needs_gpu))
def test_tricks_on_the_cpu_back_end(trick: Candidate, on_cpu: Verdicts) -> None:
    assert trick_complaints(trick, on_cpu[trick.name]) == []


@pytest.mark.parametrize("honest", named(item for item in HONEST if not item.needs_gpu))
def test_honest_candidates_on_the_cpu_back_end(honest: Candidate, on_cpu: Verdicts) -> None:
    assert honest_complaints(honest, on_cpu[honest.name]) == []


@pytest.mark.gpu
@pytest.mark.parametrize("trick", named(TRICKS))
def test_tricks_on_a_gpu(trick: Candidate, on_gpu: Verdicts) -> None:
    assert trick_complaints(trick, on_gpu[trick.name]) == []


@pytest.mark.gpu
@pytest.mark.parametrize("honest", named(HONEST))
def test_honest_candidates_on_a_gpu(honest: Candidate, on_gpu: Verdicts) -> None:
    assert honest_complaints(honest, on_gpu[honest.name]) == []
