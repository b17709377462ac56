"""The corpus through the whole verifier: what needs no GPU on the CPU back end, all of it on a GPU (`-m gpu`).

One test for each half, so that its candidates are verified once, in parallel, however the tests are spread; a failure
lists every candidate that was judged otherwise than its header says.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from dice.kernels.records.verdict import Backend

from corpus import corpus
from verification import honest_complaints, trick_complaints, verify_all


def wrongly_judged(kind: str, backend: Backend, work: Path) -> dict[str, list[str]]:
    """Complaints by candidate, for all candidates of a kind that this back end can run."""
    candidates = [item for item in corpus(kind) if backend == "cuda" or not item.needs_gpu]
    verdicts = verify_all(candidates, backend, work)
    check = trick_complaints if kind == "tricks" else honest_complaints
    found = {item.name: check(item, verdicts[item.name]) for item in candidates}
    return {name: complaints for name, complaints in found.items() if complaints}


@pytest.mark.parametrize("kind", ["tricks", "honest"])
def test_on_the_cpu_back_end(kind: str, tmp_path: Path) -> None:
    assert wrongly_judged(kind, "cpu", tmp_path) == {}


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["tricks", "honest"])
def test_on_a_gpu(kind: str, tmp_path: Path) -> None:
    assert wrongly_judged(kind, "cuda", tmp_path) == {}
